/** The selectors of access reviews: what a list or watch would be narrowed to (KEP-4601). */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type FieldRequirement, parseFieldSelector } from '@coracle/apimachinery/selector/field-selector';
import {
  fromLabelSelectorObject,
  type LabelSelector,
  parseLabelSelector,
} from '@coracle/apimachinery/selector/label-selector';
import type { ResourceAttributes } from '@coracle/apimachinery/types/types';
import { forbidden, invalid, required } from '@coracle/apimachinery/validation/field-errors';

export type AccessSelectors = Pick<ResourceAttributes, 'fieldSelector' | 'labelSelector'>;
type Selector = NonNullable<ResourceAttributes['fieldSelector']>;

/** What is wrong with the shape of the selectors. */
export function selectorErrors(selectors: AccessSelectors, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ['fieldSelector', 'labelSelector'] as const) {
    const selector = selectors[name];
    if (!selector) continue;
    const { rawSelector = '', requirements = [] } = selector;
    const field = `${path}.${name}`;
    if (rawSelector !== '' && requirements.length > 0)
      errors.push(invalid(`${field}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'));
    if (rawSelector === '' && requirements.length === 0)
      errors.push(
        required(`${field}.requirements`, `when ${name} is specified, requirements or rawSelector is required`),
      );
    requirements.forEach(({ key = '', operator = '', values = [] }, at) => {
      const one = `${field}.requirements[${at}]`;
      if (key === '') errors.push(required(`${one}.key`, 'must be specified'));
      const needs = operator === 'In' || operator === 'NotIn';
      if (needs && values.length === 0)
        errors.push(required(`${one}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      else if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0)
        errors.push(forbidden(`${one}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    });
  }
  return errors;
}

/** The selectors as the authorizer reads them; what cannot be read is left out, which asks for more, never for less. */
export function accessSelectors({ fieldSelector, labelSelector }: AccessSelectors): {
  readonly fieldSelector?: readonly FieldRequirement[];
  readonly labelSelector?: LabelSelector;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const read = <T>(make: () => T): T | undefined => {
    try {
      return make();
    } catch (error) {
      problems.push((error as Error).message);
      return undefined;
    }
  };
  const fields = fieldSelector && read(() => fieldRequirements(fieldSelector, problems));
  const labels = labelSelector && read(() => labelRequirements(labelSelector));
  return { ...(fields && { fieldSelector: fields }), ...(labels && { labelSelector: labels }), problems };
}

function fieldRequirements({ rawSelector, requirements = [] }: Selector, problems: string[]): FieldRequirement[] {
  if (rawSelector) return parseFieldSelector(rawSelector);
  return requirements.flatMap(({ key = '', operator = '', values = [] }): FieldRequirement[] => {
    const [value = ''] = values;
    if (operator === 'In' && values.length === 1) return [{ field: key, op: '=', value }];
    if (operator === 'NotIn' && values.length === 1) return [{ field: key, op: '!=', value }];
    problems.push(`fieldSelector ignored for ${key}: operator ${operator} with ${values.length} values`);
    return [];
  });
}

const labelRequirements = ({ rawSelector, requirements = [] }: Selector): LabelSelector =>
  rawSelector
    ? parseLabelSelector(rawSelector)
    : fromLabelSelectorObject({
        matchExpressions: requirements.map(({ key = '', operator = '', values = [] }) => ({ key, operator, values })),
      } as Parameters<typeof fromLabelSelectorObject>[0]);
