/** What create, update, patch and their subresources have in common: the call handed to the registry. */

import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { scalePathsOf } from '../registry/scale.ts';
import type { WriteCall, WriteResult } from '../registry/write-contract.ts';
import { admissionHooks } from './admission-hooks.ts';
import { authorizationAttributes, forbiddenBy } from './authorization.ts';
import type { Exchange } from './exchange.ts';
import type { Representation } from './negotiation.ts';
import type { WriteOptions } from './query.ts';
import { largeResponse, objectResponse, shownObject } from './responses.ts';
import { scaleAdmission } from './scale-admission.ts';

const MAX_MANAGER_LENGTH = 128;

/** Who owns the fields of this write: the parameter, else the User-Agent up to its first slash. */
export function fieldManagerOf(exchange: Exchange, options: Pick<WriteOptions, 'fieldManager'>): string {
  if (options.fieldManager !== '') return options.fieldManager;
  const agent = exchange.request.headers['user-agent'] ?? '';
  const slash = agent.indexOf('/');
  return (slash < 0 ? agent : agent.slice(0, slash)).slice(0, MAX_MANAGER_LENGTH) || 'unknown';
}

export function writeCall(
  exchange: Exchange,
  options: Pick<WriteOptions, 'dryRun' | 'fieldManager'>,
  subresource: string = exchange.info.subresource,
): WriteCall {
  const { resource: info } = exchange;
  const hooks = admissionHooks(exchange, { info, subresource, dryRun: options.dryRun });
  return {
    info,
    subresource,
    namespace: exchange.namespace,
    name: exchange.info.name,
    dryRun: options.dryRun,
    manager: fieldManagerOf(exchange, options),
    admission:
      subresource === 'scale' && exchange.subresource
        ? scaleAdmission(hooks, { info, paths: scalePathsOf(exchange.subresource) })
        : hooks,
    client: exchange,
    warn: exchange.warn,
  };
}

/** A PUT or apply that would create, and whatever connects, needs the right to create. Rejects with ApiError 403. */
export async function authorizeCreate({ info, server, user }: Exchange): Promise<void> {
  const asked = { ...info, verb: 'create' };
  const decision = await server.authorize(user, authorizationAttributes(asked));
  if (!decision.allowed) throw forbiddenBy(user, asked, decision.reason);
}

/** The stored (or would-be) object; 201 when it was created. A promise only for a large one. */
export function writeResponse(
  exchange: Exchange,
  { result, representation }: { readonly result: WriteResult; readonly representation: Representation },
): ApiResponse | Promise<ApiResponse> {
  const { stored, object } = result;
  const status = result.created ? 201 : 200;
  if (stored !== undefined || !result.isLarge)
    return objectResponse(exchange, { status, representation, stored, object });
  const { kind, apiVersion, ...rest } = shownObject(exchange, object, representation);
  return encodeJsonInPieces({ kind, apiVersion, ...rest }, nextTurn).then((bytes) =>
    largeResponse(exchange, { status, bytes, representation }),
  );
}
