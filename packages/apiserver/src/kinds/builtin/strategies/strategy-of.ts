/** The strategy of each built-in resource, out of what its group says of it. The facts are those of Kubernetes 1.36. */
import { canonicalizeScalars } from '@coracle/apimachinery/schema/canonical-scalars';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { defineStrategy, type ResourceStrategy, type UpdateStrategy } from '@coracle/apimachinery/types/strategy';
import type { Validate } from '@coracle/apimachinery/validation/field-errors';
import { presetsOf } from '../defaults/kind-defaults.ts';
import { holdsQuantity, quantityErrors } from '../defaults/quantities.ts';
import type { BuiltinKind, BuiltinSubresource, Kinds } from './builtin-kind.ts';
import facts from './kind-facts.json' with { type: 'json' };
import { KINDS } from './kinds.ts';

const FACTS = facts as Kinds;

/** `schema` is asked for when the first object comes. */
export function strategyOf(resource: {
  readonly group: string;
  readonly resource: string;
  readonly hasStatus: boolean;
  readonly schema: () => Schema;
}): ResourceStrategy {
  const { schema } = resource;
  const name = resource.group === '' ? resource.resource : `${resource.group}/${resource.resource}`;
  const said: BuiltinKind = { ...FACTS[name], ...KINDS[name] };
  const { setDefaults, validate, warnings, subresources = {}, ...kind } = said;
  const validateAmounts = (rules: Validate | undefined): Validate => {
    return (object, old) => {
      const errors = rules?.(object, old) ?? [];
      const amounts = holdsQuantity(schema()) ? quantityErrors(object, schema()) : [];
      return amounts.length === 0 ? errors : [...amounts, ...errors];
    };
  };
  const endpointOf = ({ validate: own, ...rest }: BuiltinSubresource): Partial<UpdateStrategy> => ({
    ...rest,
    ...(own && { validateUpdate: validateAmounts(own) }),
  });
  const validateWhole = validateAmounts(validate);
  const presetValues = presetsOf(name);
  return defineStrategy({
    ...kind,
    statusSubresource: resource.hasStatus,
    setDefaults(object) {
      presetValues?.(object);
      setDefaults?.(object);
      canonicalizeScalars(schema(), object);
    },
    validate: validateWhole,
    validateUpdate: validateWhole,
    ...(warnings && {
      warningsOnCreate: (object) => [...warnings(object)],
      warningsOnUpdate: (object, old) => [...warnings(object, old)],
    }),
    subresources: Object.fromEntries(Object.entries(subresources).map(([name, one]) => [name, endpointOf(one)])),
  });
}
