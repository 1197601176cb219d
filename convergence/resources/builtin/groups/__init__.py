"""Resources that are made of members: each group is a nested stack whose template is made of what the group wants."""
