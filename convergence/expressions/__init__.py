"""Evaluates YAQL expressions of users in separate processes with limits."""

from __future__ import annotations

from convergence.expressions.process import Evaluator, ExpressionLimits, evaluator

__all__ = ['Evaluator', 'ExpressionLimits', 'evaluator']
