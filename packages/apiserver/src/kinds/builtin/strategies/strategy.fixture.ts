/** What the strategies of built-in kinds say of objects, for tests. */
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { fieldErrorBody } from '@coracle/apimachinery/meta/status';
import type { ResourceStrategy } from '@coracle/apimachinery/types/strategy';
import { builtinResource } from '../builtin-resources.ts';

/** The strategy of `resource` (`pods`) in `apiVersion` (`v1`). Throws when there is no such resource. */
export function builtinStrategy(apiVersion: string, resource: string): ResourceStrategy {
  const info = builtinResource({ ...parseApiVersion(apiVersion), resource });
  if (info === undefined) throw new Error(`no ${resource} in ${apiVersion}`);
  return info.strategy;
}

/** Errors of a new object, or of an update of `old`, as `field: message`. */
export function validationErrors(apiVersion: string, resource: string, object: object, old?: object): string[] {
  const strategy = builtinStrategy(apiVersion, resource);
  const now = { ...object };
  const found = old === undefined ? strategy.validate?.(now) : strategy.validateUpdate?.(now as never, old as never);
  return (found ?? []).map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}
