"""What is known of the objects of resources: who looks at them next, what was seen, and what is put right."""
