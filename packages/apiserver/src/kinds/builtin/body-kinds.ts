/**
 * Built-in kinds that are no resource of their own, in the shape in which readers of bodies know kinds: bodies of
 * subresources (Scale, Eviction, Binding, TokenRequest), and options of connections, which admission sees as objects.
 */
import type { GroupVersionKind } from '@coracle/apimachinery/meta/gvk';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import { canonicalizeScalars } from '@coracle/apimachinery/schema/canonical-scalars';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { builtinSchema, builtinTypeName } from '@coracle/apimachinery/types/builtin-types';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { defineStrategy } from '@coracle/apimachinery/types/strategy';

export const SCALE: GroupVersionKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
export const EVICTION: GroupVersionKind = { group: 'policy', version: 'v1', kind: 'Eviction' };
export const BINDING: GroupVersionKind = { group: '', version: 'v1', kind: 'Binding' };

/** Types that have been renamed since, with the same fields. */
const OLDER: Readonly<Record<string, GroupVersionKind>> = { 'policy/v1beta1/Eviction': EVICTION };

const DEFAULTS: Readonly<Record<string, (object: JsonObject) => void>> = {
  'authentication.k8s.io/v1/TokenRequest': (request) => {
    request['spec'] ??= {};
    (request['spec'] as JsonObject)['expirationSeconds'] ??= 3600;
  },
};

const TEXT: Schema = { type: 'string' };
const FLAG: Schema = { type: 'boolean' };
const options = (properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  properties: { kind: TEXT, apiVersion: TEXT, ...properties },
});
const STREAMS = { stdin: FLAG, stdout: FLAG, stderr: FLAG, tty: FLAG, container: TEXT };

/** Of the core group's v1; no document publishes them as types. */
const OPTIONS: Readonly<Record<string, Schema>> = {
  PodExecOptions: options({ ...STREAMS, command: { type: 'array', items: TEXT } }),
  PodAttachOptions: options(STREAMS),
  PodPortForwardOptions: options({ ports: { type: 'array', items: { type: 'integer', format: 'int32' } } }),
  PodProxyOptions: options({ path: TEXT }),
  ServiceProxyOptions: options({ path: TEXT }),
  NodeProxyOptions: options({ path: TEXT }),
};

const known = new Map<string, ResourceInfo>();

/** The kind as bodies of it are read; undefined when there is no such built-in type. The same object each time. */
export function bodyKind(gvk: GroupVersionKind): ResourceInfo | undefined {
  const key = `${gvk.group}/${gvk.version}/${gvk.kind}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const schema = schemaOf(OLDER[key] ?? gvk);
  if (schema === undefined) return undefined;
  const setDefaults = DEFAULTS[key];
  const info: ResourceInfo = {
    group: gvk.group,
    version: gvk.version,
    kind: gvk.kind,
    listKind: `${gvk.kind}List`,
    resource: '',
    singular: '',
    namespaced: true,
    verbs: [],
    shortNames: [],
    categories: [],
    subresources: [],
    schema,
    columns: [],
    selectableFields: {},
    strategy: defineStrategy({
      setDefaults(object) {
        setDefaults?.(object);
        canonicalizeScalars(schema, object);
      },
    }),
  };
  known.set(key, info);
  return info;
}

function schemaOf(gvk: GroupVersionKind): Schema | undefined {
  const name = builtinTypeName(gvk);
  if (name !== undefined) return builtinSchema(name);
  return gvk.group === '' && Object.hasOwn(OPTIONS, gvk.kind) ? OPTIONS[gvk.kind] : undefined;
}
