/** Validation of StorageClasses: `cluster-rules.json`, and what is no rule. */
import { byteLength, checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import { isObject, objectsAt, textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  invalid,
  invalidEach,
  required,
  tooLong,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './cluster-rules.json' with { type: 'json' };
import { byRules, type RuleCheck } from './table-rules.ts';

const LONGEST_PARAMETERS = 256 * 1024;
const MOST_PARAMETERS = 512;

const parameters: RuleCheck = (errors, value, { at }) => {
  const entries = isObject(value) ? Object.entries(value) : [];
  const size = entries.reduce((sum, [key, text]) => sum + byteLength(key) + byteLength(String(text)), 0);
  if (entries.length > MOST_PARAMETERS) errors.push(tooLong(at, MOST_PARAMETERS));
  else {
    if (entries.some(([key]) => key === '')) errors.push(invalid(at, '', 'field can not be empty.'));
    if (size > LONGEST_PARAMETERS) errors.push(tooLong(at, LONGEST_PARAMETERS));
  }
};

/** The places in which volumes of a class may lie. */
const topologies: RuleCheck = (errors, value, { at: path }) => {
  const known = new Set<string>();
  validateNested(errors, objectsAt(value), (term, i) => {
    const at = `${path}[${i}].matchLabelExpressions`;
    const values = new Map<string, string>();
    validateNested(errors, objectsAt(term, 'matchLabelExpressions'), (one, j) => {
      const key = textAt(one, 'key');
      const listed = textsAt(one, 'values');
      const seen = new Set<string>();
      if (listed.length === 0) errors.push(required(`${at}[${j}].values`));
      validateEach(errors, listed, (value, k) => {
        const isTwice = seen.has(value);
        seen.add(value);
        return isTwice ? [duplicate(`${at}[${j}].values[${k}]`, value)] : [];
      });
      errors.push(...invalidEach(`${at}[${j}].key`, key, checkQualifiedName(key)));
      if (values.has(key)) errors.push(duplicate(`${at}[${j}].key`, key));
      values.set(key, JSON.stringify([...seen].sort()));
    });
    const whole = JSON.stringify([...values].map((pair) => pair.join()).sort());
    if (known.has(whole)) errors.push(duplicate(at, ''));
    known.add(whole);
  });
};

export const validateStorageClass = byRules(rules.storageClass, { checks: { parameters, topologies } });
