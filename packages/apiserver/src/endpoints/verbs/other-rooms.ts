/** What other rooms of the server answer, and nobody stores: tokens of accounts, access and token reviews. */

import type { ApiResponse } from '@coracle/runtime/http/seam';
import { bodyKind } from '../../kinds/builtin/body-kinds.ts';
import { matchNamespace } from '../../registry/object-metadata.ts';
import { admissionHooks } from '../admission-hooks.ts';
import { decodeObjectBody } from '../body.ts';
import type { CreateOnlyHandler, Exchange, SubresourceHandler } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse } from '../responses.ts';

/** POST to a subresource. The handler has the body validated once it is whole. */
export async function registeredSubresourceVerb(exchange: Exchange, handler: SubresourceHandler): Promise<ApiResponse> {
  const { info, resource, annotate } = exchange;
  const { group, version } = resource;
  const options = parseWriteOptions(exchange.query, 'CreateOptions');
  const { fieldValidation } = options;
  const kind = bodyKind({ group, version, ...exchange.subresource! })!;
  const body = await decodeObjectBody(exchange, { info: kind, fieldValidation, dropStatus: false });
  matchNamespace(body.metadata, exchange.namespace);
  const hooks = admissionHooks(exchange, { info: resource, subresource: info.subresource, dryRun: options.dryRun });
  const subject = { name: info.name, object: body, oldObject: undefined };
  await hooks.mutate('CREATE', subject);
  const validate = async (): Promise<void> => hooks.validate('CREATE', subject);
  return documentResponse(exchange, { status: 201, object: await handler({ info, body, validate, annotate }) });
}

/** POST of a kind that is answered and not stored: access reviews, token reviews. */
export async function reviewVerb(exchange: Exchange, handler: CreateOnlyHandler): Promise<ApiResponse> {
  const { resource: info, user } = exchange;
  const { dryRun, fieldValidation } = parseWriteOptions(exchange.query, 'CreateOptions');
  const review = await decodeObjectBody(exchange, { info, fieldValidation, dropStatus: true });
  matchNamespace(review.metadata, exchange.namespace);
  const hooks = admissionHooks(exchange, { info, subresource: '', dryRun });
  const subject = { name: review.metadata.name ?? '', object: review, oldObject: undefined };
  await hooks.mutate('CREATE', subject);
  await hooks.validate('CREATE', subject);
  return documentResponse(exchange, { status: 201, object: await handler(review, user, exchange.info.namespace) });
}
