"""Policy files: YAML with line numbers, the keys that it may have, and the JSON schema.

In reading order:

    table_names   suffixes of tables
    yaml_entries  YAML with the line of every key
    policy_file   policy files
    spec          keys of policy files: reader, schema and docs row
    schema        their JSON schema
"""
