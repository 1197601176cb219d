"""Questions that only workers can answer, because the answers come from the services behind the resource types."""
