"""Policy files: YAML with line numbers, the keys that it may have, and the JSON schema.

In reading order:

    yaml_entries  YAML with the line of every key
    spec          keys: reader, schema and docs row
    policy_file   policy files
"""
