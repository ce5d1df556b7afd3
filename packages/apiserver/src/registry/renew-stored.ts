/**
 * Objects of built-in kinds as they would be stored today. Older versions of this server left out what Go writes though
 * nobody sent it (nulls, zeros, empty structs); upstream, which stores protobuf, fills that in whenever it reads.
 */

import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { emptyToNull } from '@coracle/apimachinery/schema/empty-to-null';
import { parseStored } from '@coracle/apimachinery/schema/parse-json';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Renew } from '../cache/store-load.ts';
import { builtinResources } from '../kinds/builtin/builtin-resources.ts';
import { applyKindDefaults } from './normalize-input.ts';
import { encodeObject, storageVersionOf } from './versioned-view.ts';

const decoder = new TextDecoder();

/** By where they lie and the version they lie in. */
let byPlace: ReadonlyMap<string, ResourceInfo> | undefined;

function resourceAt(prefix: string, apiVersion: string): ResourceInfo | undefined {
  byPlace ??= new Map(
    builtinResources()
      .filter((info) => apiVersionOf(info) === storageVersionOf(info))
      .map((info) => [`${storagePrefix(info)} ${apiVersionOf(info)}`, info]),
  );
  return byPlace.get(`${prefix} ${apiVersion}`);
}

/** What is no object of a built-in kind, or does not parse, is given back as it is. */
export const renewStored: Renew = ({ prefix }, bytes) => {
  try {
    const text = decoder.decode(bytes);
    const object = parseStored(text) as UnstructuredObject;
    const info = resourceAt(prefix, object.apiVersion ?? '');
    if (info === undefined) return bytes;
    applyKindDefaults(info, object);
    emptyToNull(info.schema, object);
    return JSON.stringify(object) === text ? bytes : encodeObject(object);
  } catch {
    return bytes;
  }
};
