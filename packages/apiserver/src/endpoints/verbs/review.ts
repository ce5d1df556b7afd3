/** POST of a kind that is answered and not stored: access reviews, token reviews. */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { matchNamespace } from '../../registry/object-metadata.ts';
import { admissionHooks } from '../admission-hooks.ts';
import { decodeObjectBody } from '../body.ts';
import type { CreateOnlyHandler, Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse } from '../responses.ts';

export async function reviewVerb(exchange: Exchange, handler: CreateOnlyHandler): Promise<ApiResponse> {
  const { resource: info, user } = exchange;
  const { dryRun, fieldValidation } = parseWriteOptions(exchange.query, 'CreateOptions');
  const review = await decodeObjectBody(exchange, { info, fieldValidation, dropStatus: true });
  matchNamespace(review.metadata, exchange.namespace);
  const hooks = admissionHooks(exchange, { info, subresource: '', dryRun });
  const subject = { name: review.metadata.name ?? '', object: review, oldObject: undefined };
  await hooks.mutate('CREATE', subject);
  await hooks.validate('CREATE', subject);
  const object = await handler(review, user, { info: exchange.info, dryRun, warn: exchange.warn });
  return documentResponse(exchange, { status: 201, object });
}
