"""What is secret: public objects that say which values look like which, written before any row is opened.

In reading order:

    genuine       whether an object is of the package's own classes
    attributes    the kinds of attributes
    domain        what a record may look like
    where         yes/no questions about one record
    edges         what secret edges connect, in boxes and in chains
    secrets       the families of secret edges that users name
    knowledge     what the world already knows
    adversary     against whom, where what is known ties people together
    application   who may ask for what, for which purpose and until when
    policy        all of it together, and the guarantee
    person_numbers  one number of each person, and the policy of such numbers
    inclusion     whether one policy protects all that another does
    yaml_entries  YAML with the line of every key
    keys          keys of files: reader, schema and docs row
    policy_file   policy files
    pair          what is promised about two records, in plain words
    describe      a policy in plain words
"""
