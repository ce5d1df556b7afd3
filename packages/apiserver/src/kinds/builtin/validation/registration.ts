/** APIServices (kube-aggregator's validation). */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import rules from './api-service-rules.json' with { type: 'json' };
import { validateByRules } from './table-rules.ts';

export function validateApiService(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  validateByRules(errors, rules, { self: object, at: '', name: '' });
  return errors;
}
