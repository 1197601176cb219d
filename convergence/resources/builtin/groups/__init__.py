"""Resources that consist of members: each group is a nested stack whose template lists the members."""
