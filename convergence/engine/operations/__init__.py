"""Operations on stacks: each request is checked, planned and started."""
