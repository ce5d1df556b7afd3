/** In what a live object differs from what an apply of the declared one would make of it. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isOwnAnnotation, MANAGED_BY, PART_OF } from '../status/metadata-keys.ts';

/** An object without what the server keeps about it. */
export function comparable(object: unknown): unknown {
  const {
    metadata,
    status: _status,
    ...rest
  } = object as Record<string, unknown> & { metadata: Record<string, unknown> };
  const { managedFields: _m, generation: _g, resourceVersion: _r, creationTimestamp: _c, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

export interface ChangedField {
  /** As it is written in code: `spec.template.spec.volumes[0].name`. */
  readonly path: string;
  /** Undefined when it is not there. */
  readonly before: unknown;
  readonly after: unknown;
}

/** Of one object; more are left out. */
const MAX_CHANGED = 200;
const OWN_LABELS: ReadonlySet<string> = new Set([MANAGED_BY.key, PART_OF, 'configsync.gke.io/declared-version']);

/** The fields that differ, whole where they are there on one side alone. What a sync writes about itself is left out. */
export function changedFields(live: unknown, wanted: unknown): ChangedField[] {
  const found: ChangedField[] = [];
  compare({ before: unmarked(live), after: unmarked(wanted) }, '', found);
  return found;
}

function compare(
  { before, after }: { readonly before: unknown; readonly after: unknown },
  path: string,
  found: ChangedField[],
): void {
  if (found.length >= MAX_CHANGED || deepEqual(before, after)) return;
  if (isMap(before) && isMap(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
      compare({ before: before[name], after: after[name] }, `${path}${nameText(name, path)}`, found);
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    before.forEach((item, at) => {
      compare({ before: item, after: after[at] }, `${path}[${at}]`, found);
    });
  else found.push({ path, before, after });
}

const nameText = (name: string, path: string): string =>
  /^[\w-]+$/.test(name) ? `${path === '' ? '' : '.'}${name}` : `[${JSON.stringify(name)}]`;

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function unmarked(object: unknown): unknown {
  const { metadata, ...rest } = comparable(object) as { metadata: Record<string, unknown> };
  const without = (values: unknown, isOwn: (key: string) => boolean): Record<string, unknown> =>
    Object.fromEntries(Object.entries(isMap(values) ? values : {}).filter(([key]) => !isOwn(key)));
  return {
    ...rest,
    metadata: {
      ...metadata,
      labels: without(metadata['labels'], (key) => OWN_LABELS.has(key)),
      annotations: without(metadata['annotations'], isOwnAnnotation),
    },
  };
}
