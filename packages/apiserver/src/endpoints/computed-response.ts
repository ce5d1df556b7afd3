/** Answers with objects that nobody stores, made when they are asked for, in the form that the client reads. */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { encodeObject } from '../registry/versioned-view.ts';
import { checkPartial, negotiate, type Representation, wantsPretty } from './negotiation.ts';
import { parseQuery, type Query } from './query.ts';
import { encodedResponse } from './responses.ts';
import { parseIncludeObject, partialOf, tableOf } from './table.ts';

/** One object, or a list of some, whose items do not say what they are, as those of built-in lists. */
export type Computed =
  | { readonly type: 'object'; readonly object: Readonly<UnstructuredObject> }
  | {
      readonly type: 'list';
      readonly apiVersion: string;
      /** Of the list: `PodMetricsList`. */
      readonly kind: string;
      readonly objects: readonly Readonly<UnstructuredObject>[];
    };

interface Shown {
  readonly answer: Computed;
  /** The layout of a Table is made once for each of these. */
  readonly table: Pick<ResourceInfo, 'columns'>;
  /** ms since the epoch. */
  readonly now: number;
}

/** JSON, YAML, a Table or metadata alone. Throws ApiError 406 for other forms. */
export function computedResponse(request: Pick<ApiRequest, 'headers' | 'query'>, shown: Shown): ApiResponse {
  const query = parseQuery(request.query);
  const pretty = wantsPretty(request.headers, query.get('pretty'));
  const representation = negotiate(request.headers, { pretty });
  const document = documentOf(shown, representation, query);
  return encodedResponse({ status: 200, bytes: encodeObject(document), representation });
}

function documentOf(
  { answer, table, now }: Shown,
  representation: Representation,
  query: Query,
): Readonly<Record<string, unknown>> {
  const { as, version } = representation;
  const isList = answer.type === 'list';
  checkPartial(representation, isList);
  const objects = isList ? answer.objects : [answer.object];
  if (as === 'table') {
    const includeObject = parseIncludeObject(query.get('includeObject'));
    return tableOf(table, { objects, version, includeObject, now, definitions: true, metadata: {} });
  }
  if (!isList) return as === 'partial' ? partialOf(answer.object, version) : answer.object;
  if (as === 'partial') {
    const items = objects.map((one) => partialOf(one, version));
    return { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${version}`, metadata: {}, items };
  }
  const items = objects.map(({ kind: _, apiVersion: __, ...rest }) => rest);
  return { kind: answer.kind, apiVersion: answer.apiVersion, metadata: {}, items };
}
