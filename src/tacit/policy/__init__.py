"""What is secret: public objects that say which values look like which, written before any row is opened.

In reading order:

    genuine     whether an object is of the package's own classes
    attributes  the kinds of attributes, one module each
    domain      what a record may look like
    where       yes/no questions about one record
    secrets     the families of secret edges that users name, one module each
    edges       what secret edges connect, in boxes and in chains
    knowledge   what the world already knows, one module each kind of fact
    policy      all of it together, and the guarantee
    inclusion   whether one policy protects all that another does
    files       policy files, their keys and their schema
    words       a policy in plain words
"""
