"""Evaluates what users write in YAQL, in a process of its own that may cost only so much."""

from __future__ import annotations

from convergence.expressions.process import Evaluator, ExpressionLimits, evaluator

__all__ = ['Evaluator', 'ExpressionLimits', 'evaluator']
