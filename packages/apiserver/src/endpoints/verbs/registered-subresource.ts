/** Subresources that another room answers: token, log, exec, portforward. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { bodyKind } from '../../kinds/builtin/body-kinds.ts';
import { matchNamespace } from '../../registry/object-metadata.ts';
import { admissionHooks } from '../admission-hooks.ts';
import { decodeObjectBody, parseBody } from '../body.ts';
import type { Exchange, SubresourceHandler } from '../exchange.ts';
import { type FieldValidation, parseWriteOptions } from '../query.ts';
import { documentResponse } from '../responses.ts';

export async function registeredSubresourceVerb(exchange: Exchange, handler: SubresourceHandler): Promise<ApiResponse> {
  const { request, user, info, resource } = exchange;
  const { dryRun, fieldValidation } = parseWriteOptions(exchange.query, 'CreateOptions');
  const body = await bodyOf(exchange, fieldValidation);
  const hooks = admissionHooks(exchange, { info: resource, subresource: info.subresource, dryRun });
  const subject = { name: info.name, object: body, oldObject: undefined };
  const isAdmitted = request.method === 'POST' && body !== undefined;
  if (isAdmitted) await hooks.mutate('CREATE', subject);
  const answer = await handler({
    request,
    user,
    info,
    resource,
    body,
    dryRun,
    async validate() {
      if (isAdmitted) await hooks.validate('CREATE', subject);
    },
    warn: exchange.warn,
    annotate: exchange.annotate,
  });
  return 'object' in answer ? documentResponse(exchange, answer) : answer;
}

/** What a POST of a built-in kind carries is read as that kind; what others are sent is theirs to read. */
async function bodyOf(exchange: Exchange, fieldValidation: FieldValidation): Promise<UnstructuredObject | undefined> {
  const { request, subresource, resource } = exchange;
  if (request.method === 'GET') return undefined;
  const { group, version } = resource;
  const info = subresource && request.method === 'POST' ? bodyKind({ group, version, ...subresource }) : undefined;
  if (info) {
    const object = await decodeObjectBody(exchange, { info, fieldValidation, dropStatus: false });
    matchNamespace(object.metadata, exchange.namespace);
    return object;
  }
  if (request.body.length === 0) return undefined;
  const body: unknown = parseBody(exchange, undefined).value;
  if (!isJsonObject(body)) throw badRequest('the request body must be a JSON object');
  return body as UnstructuredObject;
}
