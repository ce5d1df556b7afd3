/** Validation of flow schemas and priority levels (apis/flowcontrol/validation): `flow-control-rules.json`, and what is no rule. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, numberAt, objectAt, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import { duplicate, invalid, required, validateEach } from '@coracle/apimachinery/validation/field-errors';
import { MANDATORY_LEVELS, MANDATORY_SCHEMAS } from '../flow-control-objects.ts';
import rules from './flow-control-rules.json' with { type: 'json' };
import { validateByRules } from './table-rules.ts';

const MAX_HASH_BITS = 60;
const QUEUING = ['limited', 'limitResponse', 'queuing'];

export function validateFlowSchema(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [name, spec] = [textAt(object, 'metadata', 'name'), objectAt(object, 'spec')];
  validateByRules(errors, rules.flowSchema, { self: spec, at: 'spec', name });
  const fixed = Object.hasOwn(MANDATORY_SCHEMAS, name) ? MANDATORY_SCHEMAS[name] : undefined;
  if (fixed !== undefined && !deepEqual(spec, fixed)) {
    errors.push(invalid('spec', spec, `spec of '${name}' must equal the fixed value`));
  }
  validateTypes(errors, object);
  return errors;
}

export function validatePriorityLevel(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [name, spec] = [textAt(object, 'metadata', 'name'), objectAt(object, 'spec')];
  validateByRules(errors, rules.priorityLevel, { self: spec, at: 'spec', name });
  const [queues, hand] = [numberAt(spec, ...QUEUING, 'queues'), numberAt(spec, ...QUEUING, 'handSize')];
  if (errors.length === 0 && entropyBits(queues, hand) > MAX_HASH_BITS) {
    const sizes = `deckSize ${queues} and handSize ${hand}`;
    const detail = `required entropy bits of ${sizes} should not be greater than ${MAX_HASH_BITS}`;
    errors.push(invalid(`spec.${QUEUING.join('.')}.handSize`, hand, detail));
  }
  const fixed = Object.hasOwn(MANDATORY_LEVELS, name) ? MANDATORY_LEVELS[name] : undefined;
  // How much room what is exempt takes up is up to the administrator.
  const beside = (level: JsonObject): JsonObject => (name === 'exempt' ? { ...level, exempt: undefined } : level);
  if (fixed !== undefined && !deepEqual(beside(spec), beside(fixed))) {
    errors.push(invalid('spec', spec, `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`));
  }
  validateTypes(errors, object);
  return errors;
}

/** Bits of a hash that are used up to deal a hand, a little more than needed (shufflesharding.RequiredEntropyBits). */
const entropyBits = (deck: number, hand: number): number => Math.ceil(Math.log2(deck) * hand);

/** Of each type of condition there is one. */
function validateTypes(errors: FieldError[], object: JsonObject): void {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(object, 'status', 'conditions'), (condition, i) => {
    const type = textAt(condition, 'type');
    const at = `status.conditions[${i}].type`;
    const errors = seen.has(type) ? [duplicate(at, type)] : [];
    seen.add(type);
    return type === '' ? [...errors, required(at, 'must not be empty')] : errors;
  });
}
