"""What is secret: public objects that say which values look like which, written before any row is opened.

Read in this order: `domain` (what a record may look like), `intervals` (sets of positions on one axis), `where`
(yes/no questions about a record), `edges` (the shapes that secret edges have), `secrets` (the families of edges that
users name), `knowledge` (what the world already knows), `policy` (all of it together, and the guarantee), `classes` and
`inclusion` (whether one policy protects all that another does), `file` (YAML <-> objects), `describe` (in plain words).
"""
