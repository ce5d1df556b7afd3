/** The name of a signer: `example.com/path` (ValidateSignerName in core/validation). */

import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { invalid, invalidEach, required, tooLong } from '@coracle/apimachinery/validation/field-errors';

const LONGEST_DOMAIN = 253;
/** A domain, and a path that holds a name in a namespace. */
const LONGEST_NAME = LONGEST_DOMAIN + 1 + LONGEST_DOMAIN + 1 + 63;

/** What is wrong with the name of a signer. Of each part only the first label that is none is reported. */
export function signerNameErrors(name: string, at: string): FieldError[] {
  if (name === '') return [required(at)];
  const [domain = '', path, ...more] = name.split('/');
  if (path === undefined || more.length > 0) {
    return [invalid(at, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const labels = domain.split('.');
  const errors = domain.length > LONGEST_DOMAIN ? [tooLong(at, LONGEST_DOMAIN)] : [];
  errors.push(...firstProblems(labels, checkLabelName, { at, part: domain }));
  if (labels.length < 2) {
    errors.push(invalid(at, domain, 'should be a domain with at least two segments separated by dots'));
  }
  errors.push(...firstProblems(path.split('.'), checkSubdomain, { at, part: path }));
  return name.length > LONGEST_NAME ? [...errors, tooLong(at, LONGEST_NAME)] : errors;
}

function firstProblems(
  labels: readonly string[],
  check: (label: string) => readonly string[],
  { at, part }: { readonly at: string; readonly part: string },
): FieldError[] {
  const wrong = labels.find((label) => check(label).length > 0);
  if (wrong === undefined) return [];
  return invalidEach(
    at,
    part,
    check(wrong).map((detail) => `validating label ${JSON.stringify(wrong)}: ${detail}`),
  );
}
