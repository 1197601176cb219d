"""Questions that only workers can answer, because they ask the services behind the resource types."""
