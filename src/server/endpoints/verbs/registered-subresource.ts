/** Subresources that another room answers: token, log, exec, portforward. */

import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { isJsonObject } from '../../../api/meta/own-property.ts';
import { badRequest } from '../../../api/meta/status.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { admissionHooks } from '../admission-hooks.ts';
import { parseBody } from '../body.ts';
import type { Exchange, SubresourceHandler } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse } from '../responses.ts';

export async function registeredSubresourceVerb(exchange: Exchange, handler: SubresourceHandler): Promise<ApiResponse> {
  const { request, user, info, resource } = exchange;
  const writes = request.method !== 'GET' && request.body.length > 0;
  const body: unknown = writes ? parseBody(exchange, undefined).value : undefined;
  if (body !== undefined && !isJsonObject(body)) throw badRequest('the request body must be a JSON object');
  const { dryRun } = parseWriteOptions(exchange.query, 'CreateOptions');
  if (request.method === 'POST' && body !== undefined) {
    const hooks = admissionHooks(exchange, { info: resource, subresource: info.subresource, dryRun });
    const subject = { name: info.name, object: body as UnstructuredObject, oldObject: undefined };
    await hooks.mutate('CREATE', subject);
    await hooks.validate('CREATE', subject);
  }
  const answer = await handler({
    request,
    user,
    info,
    resource,
    body: body as UnstructuredObject | undefined,
    dryRun,
    warn: exchange.warn,
    annotate: exchange.annotate,
  });
  return 'object' in answer ? documentResponse(exchange, answer) : answer;
}
