/**
 * Removal of unknown fields. Built-in kinds drop what their Go struct does not have; custom kinds follow the structural
 * schema's pruning rules. One closure per schema node, compiled on first use: this runs on every write.
 */
import { OBJECT_META_SCHEMA } from './object-meta-schema.ts';
import { FORMS, type Forms, formOf, restSchema, type Schema } from './schema.ts';
import { oncePerSchema } from './schema-reach.ts';

interface Walk {
  /** The keys and indices that lead to the value in hand; only the first `depth` count. */
  readonly keys: (string | number)[];
  depth: number;
  /** Where unknown fields are reported: of a custom object, those of `metadata` at its root first, of those embedded last. */
  unknown: string[];
  readonly ofRootMeta: string[];
  readonly ofEmbeddedMeta: string[];
  readonly limit: number;
}
type Prune = (value: unknown, walk: Walk) => void;

/**
 * Removes, in place, the fields that the schema does not know, and returns their paths (`spec.containers[0].foo`):
 * sorted for custom kinds (metadata before all, metadata of embedded resources after all), the first hundred in document
 * order for built-in ones.
 */
export function pruneUnknown(schema: Schema, value: unknown, { custom, part }: PruneOptions): string[] {
  const limit = custom ? Number.POSITIVE_INFINITY : MAX_REPORTED;
  const walk: Walk = { keys: [], depth: 0, unknown: [], ofRootMeta: [], ofEmbeddedMeta: [], limit };
  if (!custom) builtinPlan(schema)(value, walk);
  else if (part) customPlan(schema)(value, walk);
  else customRootPlan(schema)(value, walk);
  const { unknown, ofRootMeta, ofEmbeddedMeta } = walk;
  return custom ? [...ofRootMeta.sort(), ...unknown.sort(), ...ofEmbeddedMeta.sort()] : unknown;
}

interface PruneOptions {
  readonly custom: boolean;
  /** The value is a part of a custom object, not a whole one: metadata has no place of its own in it. */
  readonly part?: boolean;
}

const builtinPlan = oncePerSchema(compileBuiltin);
const customPlan = oncePerSchema((schema) => compileCustom(schema, false));
const customRootPlan = oncePerSchema((schema) => compileCustom(schema, true));
const openPlan = oncePerSchema((schema) => compileMembers(schema, { meta: false, open: true }));

const keep: Prune = () => {};

/** Unknown fields of a built-in kind that are reported, as upstream's decoder does. */
const MAX_REPORTED = 100;

/** Reports and removes one member of `object`. */
function drop(object: Record<string, unknown>, key: string, walk: Walk): void {
  delete object[key];
  if (walk.unknown.length < walk.limit) walk.unknown.push(pathText(walk.keys, walk.depth, key));
}

/** `spec.containers[0]` from keys and indices. */
export function pathText(keys: readonly (string | number)[], depth: number, last?: string): string {
  let text = '';
  for (let i = 0; i < depth; i++) {
    const key = keys[i]!;
    if (typeof key === 'number') text += `[${key}]`;
    else text += text === '' ? key : `.${key}`;
  }
  if (last === undefined) return text;
  return text === '' ? last : `${text}.${last}`;
}

/** Children are compiled when a value first reaches them: schemas may be cyclic. */
function lazily(compile: () => Prune): () => Prune {
  let plan: Prune | undefined;
  return () => {
    plan ??= compile();
    return plan;
  };
}

type Members = Map<string, () => Prune>;

const membersOf = ({ properties = {} }: Schema, child: (schema: Schema) => Prune): Members =>
  new Map(Object.entries(properties).map(([key, property]) => [key, lazily(() => child(property))]));

const isScalar = (schema: Schema): boolean =>
  schema.type !== undefined && schema.type !== 'object' && schema.type !== 'array';

/** What is read by a decoder of its own: its unknown fields go, and are not reported. */
const pruneForms =
  (forms: Forms): Prune =>
  (value, walk) => {
    const form = formOf(forms, value);
    if (form !== undefined) builtinPlan(form)(value, { ...walk, keys: [], depth: 0, unknown: [], limit: 0 });
  };

function compileBuiltin(schema: Schema): Prune {
  const forms = schema[FORMS];
  if (forms !== undefined) return pruneForms(forms);
  if (isScalar(schema) || schema['x-kubernetes-preserve-unknown-fields']) return keep;
  if (schema.items) return pruneItems(lazily(() => builtinPlan(schema.items!)));
  const members = schema.properties && membersOf(schema, builtinPlan);
  const rest = restSchema(schema);
  // RawExtension, JSON and FieldsV1 are objects of any content; a map of texts has nothing to lose either.
  if (members === undefined && (rest === undefined || isScalar(rest))) return keep;
  const plan = rest && lazily(() => builtinPlan(rest));
  return pruneMembers(members ?? new Map(), schema.additionalProperties === true ? () => keep : plan, false);
}

function compileCustom(schema: Schema, root: boolean): Prune {
  const meta = root || schema['x-kubernetes-embedded-resource'] === true;
  return compileMembers(schema, { meta, open: schema['x-kubernetes-preserve-unknown-fields'] === true });
}

/** `open`: below x-kubernetes-preserve-unknown-fields everything stays, but what is specified is pruned by its own schema. */
function compileMembers(schema: Schema, { meta, open }: { readonly meta: boolean; readonly open: boolean }): Prune {
  const { items } = schema;
  const members = membersOf(schema, customPlan);
  if (meta) addMeta(members);
  const pruneArray = items && pruneItems(lazily(() => (open ? openPlan : customPlan)(items)));
  // A value of another type than its schema's is pruned all the same: nothing in it is known.
  return either(pruneMembers(members, restOf(schema), open), pruneArray ?? (open ? undefined : ALL));
}

/** `additionalProperties: true` keeps the members of an object, but nothing is known of what is in them. */
function restOf({ additionalProperties: rest }: Schema): (() => Prune) | undefined {
  if (rest === undefined) return undefined;
  return typeof rest === 'object' ? lazily(() => customPlan(rest)) : () => ALL;
}

/** One plan for objects, another for lists. */
const either =
  (pruneObject: Prune, pruneArray: Prune | undefined): Prune =>
  (value, walk) => {
    if (Array.isArray(value)) pruneArray?.(value, walk);
    else pruneObject(value, walk);
  };

/** apiVersion, kind and metadata belong to the root and to embedded resources whatever their schema says. */
function addMeta(members: Members): void {
  members.set('apiVersion', () => keep);
  members.set('kind', () => keep);
  members.set('metadata', () => METADATA);
}

const METADATA: Prune = (value, walk) => {
  const { unknown } = walk;
  walk.unknown = walk.depth === 1 ? walk.ofRootMeta : walk.ofEmbeddedMeta;
  builtinPlan(OBJECT_META_SCHEMA)(value, walk);
  walk.unknown = unknown;
};

function pruneItems(item: () => Prune): Prune {
  return (value, walk) => {
    if (!Array.isArray(value)) return;
    const plan = item();
    if (plan === keep) return;
    const depth = walk.depth++;
    for (let i = 0; i < value.length; i++) {
      const element: unknown = value[i];
      if (typeof element !== 'object' || element === null) continue;
      walk.keys[depth] = i;
      plan(element, walk);
    }
    walk.depth = depth;
  };
}

function pruneMembers(members: Members, rest: (() => Prune) | undefined, open: boolean): Prune {
  return (value, walk) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const object = value as Record<string, unknown>;
    const depth = walk.depth;
    for (const key of Object.keys(object)) {
      const plan = members.get(key) ?? rest;
      if (plan === undefined) {
        if (!open) drop(object, key, walk);
        continue;
      }
      const member = object[key];
      if (typeof member !== 'object' || member === null) continue;
      walk.keys[depth] = key;
      walk.depth = depth + 1;
      plan()(member, walk);
      walk.depth = depth;
    }
  };
}

/** Nothing is known: objects are emptied, those in lists too. */
const ALL: Prune = either(
  pruneMembers(new Map(), undefined, false),
  pruneItems(() => ALL),
);
