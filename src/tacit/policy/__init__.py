"""What is secret: public objects that say which values look like which, written before any row is opened.

In reading order:

    yaml_entries  YAML with the line of every key
    genuine       whether an object is of the package's own classes
    intervals     sets of positions on one axis
    attributes    the kinds of attributes, one module each
    domain        what a record may look like
    where         yes/no questions about one record
    secrets       the families of secret edges that users name, one module each
    edges         the shapes that secret edges have
    classes       positions that no predicate tells apart
    knowledge     what the world already knows
    policy        all of it together, and the guarantee
    inclusion     whether one policy protects all that another does
    boxes         which records edges lead to
    shortest      the shortest chain of edges between two records
    pair          what is promised about two records
    describe      a policy in plain words
    fact_edges    a secret edge that changes what is known
    table_names   suffixes of tables
    file          policy files
    schema        their JSON schema
"""
