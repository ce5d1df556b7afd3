/** OpenAPI 3.0 documents, one for each group version: what kubectl explain, apply and validate read. */

import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import { hexOf } from '@coracle/apimachinery/meta/hex';
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import { NO_PAUSE, type Pause } from '@coracle/apimachinery/meta/pause';
import { versionInfo } from '@coracle/apimachinery/meta/version-info';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { Definitions, type OpenApiObject } from './definitions.ts';
import { discoveryDocuments, discoveryPath } from './discovery-paths.ts';
import {
  type Action,
  groupVersionPath,
  groupVersionsOf,
  type Operation,
  operationTag,
  renderPaths,
  WATCH_EVENT,
} from './operations.ts';
import { queryParameters } from './query-parameters.ts';
import { typeTextsDigest } from './texts/type-texts.ts';

export const STATUS = 'io.k8s.apimachinery.pkg.apis.meta.v1.Status';
const DELETE_OPTIONS = 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions';
const PATCH = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch';

const FULL_TYPES = ['application/json', 'application/yaml'];
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Patch media types of a kind: custom resources know no strategic merge. Clients take the first by default. */
export const patchTypes = (info: ResourceInfo): string[] => [
  'application/json-patch+json',
  'application/merge-patch+json',
  ...(info.strategy.custom ? [] : ['application/strategic-merge-patch+json']),
  'application/apply-patch+yaml',
];

/** Media types of an answer. A pod's log comes in any that is asked for, as upstream has it, and so does a connection. */
export function answerTypes({ action, answer, info, subresource }: Operation): string[] {
  if (action === 'connect') return ['*/*'];
  if (answer === 'text' && subresource !== 'log') return ['text/plain'];
  const types = info.strategy.custom ? FULL_TYPES : [...FULL_TYPES, PROTOBUF];
  if (subresource === 'log') return ['text/plain', ...types];
  const streams = !info.strategy.custom && (action === 'list' || action === 'watch' || action === 'watchlist');
  return streams ? [...types, 'application/json;stream=watch', `${PROTOBUF};stream=watch`] : types;
}

const MORE_ANSWERS: Partial<Record<Action, readonly string[]>> = {
  post: ['201', '202'],
  put: ['201'],
  patch: ['201'],
  delete: ['202'],
};

/** The answers beside 200 and 401, with what they hold. */
export function moreResponses({ action, info }: Operation, content: OpenApiObject): Record<string, OpenApiObject> {
  const codes = action === 'patch' && info.strategy.custom ? [] : (MORE_ANSWERS[action] ?? []);
  const described = (code: string): OpenApiObject => ({
    description: code === '201' ? 'Created' : 'Accepted',
    ...content,
  });
  return Object.fromEntries(codes.map((code) => [code, described(code)]));
}

/**
 * The document of one group version. Built in full at each call: keep the result, or better its bytes, until the
 * resources of the group version change. `pause` is awaited every few milliseconds: there may be kinds of very many fields.
 */
export async function openApiV3(infos: readonly ResourceInfo[], pause: Pause = NO_PAUSE): Promise<OpenApiObject> {
  const definitions = new Definitions('v3', groupVersionsOf(infos));
  definitions.builtin(STATUS);
  definitions.builtin(WATCH_EVENT);
  for (const info of infos) {
    definitions.kind(info);
    await definitions.rest(pause);
  }
  const path = infos[0] && `${groupVersionPath(infos[0])}/`;
  const itself = path && discoveryPath(infos, { path, definitions });
  const render = {
    parameter: pathParameter,
    operation: (operation: Operation) => renderOperation(operation, definitions),
  };
  const paths = await renderPaths(infos, render, pause);
  return documentOf({ ...(itself && { [path]: itself }), ...paths }, definitions);
}

/** The document of a path of discovery (`apis/apps`, `version`); undefined where there is none. */
export function openApiV3Discovery(infos: readonly ResourceInfo[], name: string): OpenApiObject | undefined {
  const definitions = new Definitions('v3', groupVersionsOf([]));
  const path = `/${name}/`;
  const reported = discoveryPath(infos, { path, definitions });
  return reported && documentOf({ [path]: reported }, definitions);
}

function documentOf(paths: Record<string, OpenApiObject>, definitions: Definitions): OpenApiObject {
  const schemas = definitions.toObject();
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: versionInfo().gitVersion },
    paths,
    components: {
      ...(Object.keys(schemas).length > 0 && { schemas }),
      securitySchemes: {
        BearerToken: {
          type: 'apiKey',
          description: 'Bearer Token authentication',
          name: 'authorization',
          in: 'header',
        },
      },
    },
  };
}

const pathParameter = (name: string): OpenApiObject => ({
  name,
  in: 'path',
  required: true,
  description: `${name} of the object`,
  schema: { type: 'string', uniqueItems: true },
});

function renderOperation(operation: Operation, definitions: Definitions): OpenApiObject {
  const { info, gvk } = operation;
  const answer = answerSchema(operation, definitions);
  const content = Object.fromEntries(answerTypes(operation).map((type) => [type, { schema: answer }]));
  const body = bodySchema(operation, definitions);
  const bodyTypes = operation.body === 'patch' ? patchTypes(info) : ['*/*'];
  const parameters = queryParameters(operation).map(({ name, type, description }) => ({
    name,
    in: 'query',
    description,
    schema: { type, uniqueItems: true },
  }));
  return {
    tags: [operationTag(info)],
    description: operation.description,
    operationId: operation.operationId,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        content: Object.fromEntries(bodyTypes.map((type) => [type, { schema: body }])),
        required: operation.body !== 'deleteOptions',
      },
    }),
    responses: {
      '200': { description: 'OK', content },
      ...moreResponses(operation, { content }),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': { group: gvk.group, kind: gvk.kind, version: gvk.version },
  };
}

/** Which form of the documents this is: another one when paths and operations are reported in another way. */
const FORM = 3;

/** The schema of what an operation answers. */
export function answerSchema({ answer, info }: Operation, definitions: Definitions): OpenApiObject {
  if (answer === 'kind') return definitions.kind(info);
  if (answer === 'list') return definitions.list(info);
  if (answer === 'status') return definitions.builtin(STATUS);
  if (answer === 'text') return { type: 'string' };
  return definitions.builtin(answer.definition);
}

/** The schema of what an operation is sent; undefined when it takes no body. */
export function bodySchema({ body, info }: Operation, definitions: Definitions): OpenApiObject | undefined {
  if (body === undefined) return undefined;
  if (body === 'kind') return definitions.kind(info);
  if (body === 'patch') return definitions.builtin(PATCH);
  if (body === 'deleteOptions') return definitions.builtin(DELETE_OPTIONS);
  return definitions.builtin(body.definition);
}

/**
 * What has a document, as it stands in the index: group versions with what is served in them (`api/v1`, `apis/apps/v1`),
 * and paths of discovery, which hold nothing (`api`, `apis/apps`, `version`).
 */
export function openApiV3Paths(infos: readonly ResourceInfo[]): Map<string, readonly ResourceInfo[]> {
  const byPath = new Map<string, readonly ResourceInfo[]>(discoveryDocuments(infos).map((path) => [path, []]));
  for (const [path, members] of Map.groupBy(infos, groupVersionPath)) byPath.set(path.slice(1), members);
  return byPath;
}

/**
 * The hash of a group version's document, upper-case hex. It is made of what the document is made of, not of the document:
 * built-in group versions change only with the program and its descriptions, others with what their definitions say, and
 * nobody should wait for every document to be built when one is asked for. `pause` lets others in where a kind has very many
 * fields.
 */
export async function openApiV3Hash(infos: readonly ResourceInfo[], pause: Pause = NO_PAUSE): Promise<string> {
  const parts = await hashedParts(infos, pause);
  const digest = await crypto.subtle.digest('SHA-512', joinBytes(parts));
  return hexOf(new Uint8Array(digest)).toUpperCase();
}

async function hashedParts(infos: readonly ResourceInfo[], pause: Pause): Promise<Uint8Array[]> {
  const texts = await typeTextsDigest();
  const encoder = new TextEncoder();
  const parts: Uint8Array[] = [encoder.encode(`${FORM} ${versionInfo().gitVersion} ${texts}`)];
  for (const info of infos) {
    const name = `${apiVersionOf(info)}/${info.resource}`;
    parts.push(encoder.encode(' '));
    if (!info.strategy.custom) {
      parts.push(encoder.encode(name));
      continue;
    }
    const { kind, listKind, namespaced, subresources, verbs, schema } = info;
    const selectable = Object.keys(info.selectableFields);
    const reported = [name, kind, listKind, namespaced, subresources, verbs, selectable, schema];
    parts.push(await encodeJsonInPieces(reported, pause));
  }
  return parts;
}
