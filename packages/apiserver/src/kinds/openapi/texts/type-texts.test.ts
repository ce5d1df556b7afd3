import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinKindOf, builtinSchema, builtinTypeNames } from '../../../../../apimachinery/src/types/builtin-types.ts';
import { EVERYWHERE, fieldDescription, kindDescription, metadataDescription, readTypeTexts } from './type-texts.ts';

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const texts = readTypeTexts();
const everywhere = texts.get(EVERYWHERE)!.fields;

// S-249: `kubectl explain` of built-in kinds shows our description of every type and every field, in OpenAPI v2 and v3,
//   JSON and protobuf; the texts are loaded only when a document is asked for.
test('every built-in type and each of its fields has a text', () => {
  const missing: string[] = [];
  for (const name of builtinTypeNames()) {
    const own = texts.get(name);
    const kind = builtinKindOf(name)?.kind;
    const said = own?.text ?? (kind === undefined ? undefined : kindDescription(kind));
    if (said === undefined || said === `The kind ${kind}.`) missing.push(name);
    for (const field of Object.keys(builtinSchema(name).properties ?? {})) {
      const text =
        own?.fields.get(field) ??
        (kind === undefined ? undefined : fieldDescription(field)) ??
        (name === OBJECT_META ? metadataDescription(field) : undefined) ??
        everywhere.get(field);
      if (text === undefined) missing.push(`${name}.${field}`);
    }
  }
  assert.deepEqual(missing, []);
});

test('no text is about a type or a field that does not exist', () => {
  const names = new Set(builtinTypeNames());
  const fieldsOf = (name: string): string[] => Object.keys(builtinSchema(name).properties ?? {});
  const used = new Set([...names].flatMap(fieldsOf));
  const strange = [...everywhere.keys()].filter((field) => !used.has(field));
  // Types that are alike share a block: each field of it must exist in one of them.
  const blocks = new Map<string, Set<string>>();
  for (const [name, { text }] of texts) {
    if (name === EVERYWHERE) continue;
    if (!names.has(name)) strange.push(name);
    else blocks.set(text ?? name, new Set([...(blocks.get(text ?? name) ?? []), ...fieldsOf(name)]));
  }
  for (const [name, { text, fields }] of texts) {
    // It takes over what is said of every kind of Volume.
    if (name.endsWith('.PersistentVolumeSpec')) continue;
    const known = blocks.get(text ?? name);
    if (known)
      strange.push(...[...fields.keys()].filter((field) => !known.has(field)).map((field) => `${name}.${field}`));
  }
  assert.deepEqual(strange, []);
});

test('texts are one short sentence each', () => {
  for (const [name, { text, fields }] of texts) {
    for (const line of [text, ...fields.values()]) {
      if (line === undefined) continue;
      assert.match(line, /^[\x20-\x7e]{3,118}\.$/, name);
    }
  }
});
