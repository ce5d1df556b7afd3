/** What an object is that a webhook or policy has changed: it may call itself something else than it was. */

import { goJson, wrongType } from '@coracle/apimachinery/meta/go-text';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError, internalError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { bodyKind } from '../../kinds/builtin/body-kinds.ts';
import { builtinResources } from '../../kinds/builtin/builtin-resources.ts';
import { foreignKind, isOfKind, isVersionOf } from '../../kinds/builtin/foreign-kind.ts';
import { kindOf } from './served-kinds.ts';

export interface MutatedKind {
  /** By whose schema it is read; undefined where a subresource has a kind that is not known by one. */
  readonly shape: ResourceInfo | undefined;
  /** The version of the resource that it is in. */
  readonly version: ResourceInfo;
}

/** By whose schema objects of this resource or subresource are read; undefined where that is not known. */
export function shownKind(matched: ResourceInfo, subresource: string): ResourceInfo | undefined {
  const { group, version, kind } = kindOf(matched, subresource);
  const ownKind = kind !== matched.kind || group !== matched.group;
  return ownKind ? bodyKind({ group, version, kind }) : matched;
}

/**
 * The kind of an object that was one of `matched`, or of its subresource, before it was changed. A built-in one that says
 * nothing of its kind is reported, in place. Throws ApiError 500 when it cannot become again what it was.
 */
export function mutatedKind(
  matched: ResourceInfo,
  { subresource, object }: { readonly subresource: string; readonly object: UnstructuredObject },
): MutatedKind {
  const expected = kindOf(matched, subresource);
  const shape = shownKind(matched, subresource);
  if (shape?.strategy.custom) return customKind(matched, object);
  if (shape === undefined) return { shape, version: matched };
  for (const key of ['kind', 'apiVersion'] as const) {
    const value: unknown = object[key];
    if (value === undefined || value === null || value === '') {
      object[key] = key === 'kind' ? expected.kind : apiVersionOf(expected);
    } else if (typeof value !== 'string') {
      throw internalError(`couldn't get version/kind; json parse error: ${wrongType(value, 'string', key)}`);
    }
  }
  if (isOfKind(expected, object)) return { shape, version: matched };
  const other = isVersionOf(expected, object) && builtinResources().find((one) => isOfKind(one, object));
  if (!other) throw unconverted(foreignKind(expected, object));
  return { shape: other, version: other };
}

/** Another kind is reported by validation, in its own words. */
function customKind(matched: ResourceInfo, object: UnstructuredObject): MutatedKind {
  if (!object.kind) throw internalError(`Object 'Kind' is missing in '${goJson(object)}'`);
  const { apiVersion = '' } = object;
  if (apiVersion === apiVersionOf(matched)) return { shape: matched, version: matched };
  const other = matched.versions?.().find((one) => apiVersionOf(one) === apiVersion);
  if (!other) throw unconverted(`request to convert CR from an invalid group/version: ${apiVersion}`);
  return { shape: other, version: other };
}

/** Upstream's dispatchers hand on what the conversion says: an error that is no answer of the API gives no reason. */
const unconverted = (message: string): ApiError => new ApiError({ code: 500, message });
