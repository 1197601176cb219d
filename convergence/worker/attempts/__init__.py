"""Run one action of a claimed row: call the resource type until the result can be stored."""
