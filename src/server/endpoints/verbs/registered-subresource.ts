/** Subresources that another room answers: token, log, exec, portforward. */

import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { isJsonObject } from '../../../api/meta/own-property.ts';
import { badRequest } from '../../../api/meta/status.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { parseBody } from '../body.ts';
import type { Exchange, SubresourceHandler } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse } from '../responses.ts';

export async function registeredSubresourceVerb(exchange: Exchange, handler: SubresourceHandler): Promise<ApiResponse> {
  const { request, user, info, resource } = exchange;
  const writes = request.method !== 'GET' && request.body.length > 0;
  const body: unknown = writes ? parseBody(exchange, undefined).value : undefined;
  if (body !== undefined && !isJsonObject(body)) throw badRequest('the request body must be a JSON object');
  const answer = await handler({
    request,
    user,
    info,
    resource,
    body: body as UnstructuredObject | undefined,
    dryRun: parseWriteOptions(exchange.query, 'CreateOptions').dryRun,
    warn: exchange.warn,
  });
  return 'object' in answer ? documentResponse(exchange, answer) : answer;
}
