/** `/scale`: the replica count of any scalable kind as an autoscaling/v1 Scale. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { wrongType } from '@coracle/apimachinery/meta/go-text';
import type { ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { getOwn, isJsonObject, setOwn } from '@coracle/apimachinery/meta/own-property';
import { badRequest, type FieldError, internalError, invalid } from '@coracle/apimachinery/meta/status';
import {
  formatLabelSelector,
  fromLabelSelectorObject,
  type LabelSelectorObject,
} from '@coracle/apimachinery/selector/label-selector';
import { valueAt } from '@coracle/apimachinery/types/read-value';
import type { ResourceInfo, ScalePaths, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { invalid as invalidValue } from '@coracle/apimachinery/validation/field-errors';
import { storedUidConflict } from './uid-conflict.ts';
import type { WriteCall } from './write-contract.ts';

const BUILTIN: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
};

export const scalePathsOf = (subresource: SubresourceInfo): ScalePaths => subresource.scale ?? BUILTIN;

/** Stands for a count that nobody has set yet in the Scale that a patch is put on: no patch leaves it there. */
export const NO_REPLICAS = -(2 ** 31);

/**
 * The Scale of an object. Throws ApiError 500 when the object has no replica count at its path, unless `absent` stands for
 * that.
 */
export function scaleOf(
  info: ResourceInfo,
  object: Readonly<UnstructuredObject>,
  paths: ScalePaths,
  absent?: number,
): UnstructuredObject {
  const replicas = read(object, paths.specReplicasPath) ?? absent;
  if (replicas === undefined && info.strategy.custom) {
    throw internalError(`the spec replicas field "${paths.specReplicasPath}" does not exist`);
  }
  const selector = paths.labelSelectorPath === undefined ? '' : selectorText(read(object, paths.labelSelectorPath));
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp } as ObjectMeta,
    spec: replicas === undefined || replicas === 0 ? {} : { replicas },
    status: { replicas: read(object, paths.statusReplicasPath) ?? 0, ...(selector !== '' && { selector }) },
  };
}

/** The object with the replica count of `scale`. Throws ApiError 400/422 when the Scale is not valid. */
export function withScale(
  { info, name, namespace, dryRun }: Pick<WriteCall, 'info' | 'name' | 'namespace' | 'dryRun'>,
  object: Readonly<UnstructuredObject>,
  { scale, paths }: { readonly scale: Readonly<UnstructuredObject>; readonly paths: ScalePaths },
): UnstructuredObject {
  const spec = scale['spec'];
  const replicas = isJsonObject(spec) ? (getOwn(spec, 'replicas') ?? 0) : 0;
  if (replicas === NO_REPLICAS) throw badRequest(`the spec replicas field "${paths.specReplicasPath}" cannot be empty`);
  if (typeof replicas !== 'number' || !Number.isInteger(replicas) || Math.abs(replicas) > MAX_INT32) {
    const problem = wrongType(replicas, 'int32', 'spec.replicas');
    throw badRequest(`Scale in version "v1" cannot be handled as a Scale: ${problem}`);
  }
  // Of a definition's count its own rules speak, and say so as well.
  if (replicas < 0 && !info.strategy.custom) {
    const error: FieldError = invalidValue('spec.replicas', replicas, 'must be greater than or equal to 0');
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, object.metadata.name ?? '', [error]);
  }
  const next = cloneJson(object) as UnstructuredObject;
  write(next, paths.specReplicasPath, replicas);
  const { uid, resourceVersion } = scale.metadata;
  const { uid: found = '' } = object.metadata;
  if (uid && found && uid !== found) throw storedUidConflict({ info, name, namespace, dryRun }, { wanted: uid, found });
  if (resourceVersion) next.metadata.resourceVersion = resourceVersion;
  return next;
}

const MAX_INT32 = 2 ** 31 - 1;

const segments = (path: string): string[] => path.split('.').filter((part) => part !== '');

const read = (object: unknown, path: string): unknown => valueAt(object, ...segments(path));

function write(object: Record<string, unknown>, path: string, value: unknown): void {
  const parts = segments(path);
  const last = parts.pop()!;
  let at = object;
  for (const part of parts) {
    const next = getOwn(at, part);
    if (!isJsonObject(next)) setOwn(at, part, {});
    at = getOwn(at, part) as Record<string, unknown>;
  }
  setOwn(at, last, value);
}

/** The string form of a selector: a string, a plain map (ReplicationController) or a LabelSelector. */
function selectorText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!isJsonObject(value)) return '';
  const isSelector = isJsonObject(value['matchLabels']) || Array.isArray(value['matchExpressions']);
  const selector = (isSelector ? value : { matchLabels: value }) as LabelSelectorObject;
  return formatLabelSelector(fromLabelSelectorObject(selector));
}
