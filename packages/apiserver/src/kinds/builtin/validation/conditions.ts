/** Conditions of the common type (metav1.Condition), where upstream validates them: not every kind that has some does. */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import rules from './condition-rules.json' with { type: 'json' };
import { validateByRules } from './table-rules.ts';

/** Every mistake in the conditions below `holder.conditions` (metav1validation.ValidateConditions). */
export const validateConditions = (errors: FieldError[], holder: JsonObject, path: string): void =>
  validateByRules(errors, rules, { self: holder, at: path, name: '' });
