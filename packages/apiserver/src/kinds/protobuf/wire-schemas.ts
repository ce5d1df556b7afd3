/** Which schema describes a kind on the wire: the built-in kinds, Status and options, and metadata alone. */
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { builtinKindOf, builtinSchema, builtinTypeName } from '@coracle/apimachinery/types/builtin-types';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

let partial: Schema | undefined;
let partialList: Schema | undefined;

/** PartialObjectMetadata{metadata=1}: not in the table of built-in types. */
function partialObjectSchema(): Schema {
  partial ??= {
    type: 'object',
    'x-coracle-name': `${META}.PartialObjectMetadata`,
    properties: { metadata: builtinSchema(`${META}.ObjectMeta`) },
    'x-coracle-proto': { metadata: 1 },
  };
  return partial;
}

/** {metadata=1 ListMeta, items=2}, as every list kind is. */
function partialListSchema(): Schema {
  partialList ??= {
    type: 'object',
    required: ['items'],
    properties: {
      metadata: builtinSchema(`${META}.ListMeta`),
      items: { type: 'array', items: partialObjectSchema() },
    },
    'x-coracle-proto': { metadata: 1, items: 2 },
  };
  return partialList;
}

/** Undefined for kinds that have no protobuf form: custom resources, Table, and what nobody knows. */
export function wireSchemaOf(type: { readonly apiVersion: string; readonly kind: string }): Schema | undefined {
  const { group, version } = parseApiVersion(type.apiVersion);
  const { kind } = type;
  if (group === 'meta.k8s.io') {
    if (kind === 'PartialObjectMetadata') return partialObjectSchema();
    return kind === 'PartialObjectMetadataList' ? partialListSchema() : undefined;
  }
  // `pods/eviction` takes the body of its beta version as well, whose fields are the same.
  const beta = group === 'policy' && version === 'v1beta1' && kind === 'Eviction';
  const name = builtinTypeName({ group, version: beta ? 'v1' : version, kind });
  if (name !== undefined) return builtinSchema(name);
  // DeleteOptions and WatchEvent belong to every group version; the table has them once.
  const shared = builtinTypeName({ group: '', version: 'v1', kind });
  return shared !== undefined && builtinKindOf(shared)?.everyGroup ? builtinSchema(shared) : undefined;
}
