/**
 * FieldsV1 as stored objects carry them, and their sets. Objects of one kind mostly share a handful of them, so each is
 * read, written and kept once: entries that say the same share one frozen value.
 */
import { type FieldSet, fromFieldsV1, nodesLeft, toFieldsV1 } from './field-set.ts';

type Fields = Record<string, unknown>;

interface Interned {
  /** Frozen all the way down, so that it may be shared between objects and their revisions. */
  readonly fields: Fields;
  readonly set: FieldSet;
}

/** By their JSON text; the oldest goes first. Longer texts are not shared, so this holds some 15 MiB at the very most. */
const MAX_INTERNED = 1024;
const MAX_INTERNED_TEXT = 4096;
const interned = new Map<string, Interned>();

/** Sets of frozen (stored) entries: they are read again with every write of their object. */
const SETS = new WeakMap<object, FieldSet>();
/** The way back, so that an entry nobody touched is not spelled out again. */
const FIELDS = new WeakMap<FieldSet, Fields>();

/** The set of an entry; undefined when it is malformed. */
export function readFields(fields: Fields): FieldSet | undefined {
  if (!Object.isFrozen(fields)) return fromFieldsV1(fields);
  const known = SETS.get(fields);
  if (known !== undefined) return known;
  const text = JSON.stringify(fields);
  const set = interned.get(text)?.set ?? fromFieldsV1(fields);
  if (set === undefined) return undefined;
  SETS.set(fields, set);
  if (!FIELDS.has(set)) {
    FIELDS.set(set, fields);
    keep(text, { fields, set });
  }
  return set;
}

/** The FieldsV1 of a set, frozen. */
export function writeFields(set: FieldSet): Fields {
  const known = FIELDS.get(set);
  return known ?? remember(set, toFieldsV1(set));
}

function remember(set: FieldSet, made: Fields): Fields {
  // An element takes at least five characters: `"":{}`. What is too long to be shared need not be spelled out.
  const text = nodesLeft(set, MAX_INTERNED_TEXT / 5) >= 0 ? JSON.stringify(made) : undefined;
  const shared = text === undefined ? undefined : interned.get(text);
  const fields = shared?.fields ?? made;
  FIELDS.set(set, fields);
  if (text === undefined) {
    SETS.set(fields, set);
  } else if (shared === undefined) {
    SETS.set(fields, set);
    keep(text, { fields, set });
  }
  return fields;
}

function keep(text: string, entry: Interned): void {
  if (text.length > MAX_INTERNED_TEXT) return;
  if (interned.size >= MAX_INTERNED) interned.delete(interned.keys().next().value!);
  interned.set(text, entry);
}
