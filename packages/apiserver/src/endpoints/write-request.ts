/** What create, update, patch and their subresources have in common: the call handed to the registry. */

import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo, ScalePaths } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { scaleOf, scalePathsOf, withScale } from '../registry/scale.ts';
import type { AdmissionHooks, AdmissionSubject, WriteCall, WriteResult } from '../registry/write-contract.ts';
import { admissionHooks } from './admission-hooks.ts';
import { authorizationAttributes, forbiddenBy } from './authorization.ts';
import type { Exchange } from './exchange.ts';
import type { Representation } from './negotiation.ts';
import type { WriteOptions } from './query.ts';
import { largeResponse, objectResponse, shownObject } from './responses.ts';

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

/**
 * Hooks of `/scale`: webhooks and policies see the Scale that the client sent, not the object behind it. What a mutating
 * plug-in changes of the replica count goes into the object.
 */
function scaleAdmission(
  hooks: AdmissionHooks,
  { info, paths }: { readonly info: ResourceInfo; readonly paths: ScalePaths },
): AdmissionHooks {
  const scale = (object: Readonly<UnstructuredObject> | undefined): UnstructuredObject | undefined =>
    // Where nobody has set a count there is none to show.
    object && (scaleOf(info, object, paths, 0) as unknown as UnstructuredObject);
  const shown = (subject: AdmissionSubject): AdmissionSubject => ({
    ...subject,
    object: scale(subject.object),
    oldObject: scale(subject.oldObject),
  });
  return {
    mutate(operation, subject) {
      const view = shown(subject);
      const before = JSON.stringify(view.object?.['spec']);
      const keep = (): void => {
        const { object } = subject;
        if (!object || !view.object || JSON.stringify(view.object['spec']) === before) return;
        const { metadata } = object;
        const about = { info, name: metadata.name ?? '', namespace: metadata.namespace ?? '', dryRun: false };
        Object.assign(object, withScale(about, object, { scale: view.object, paths }), { metadata });
        subject.rewritten = true;
      };
      const pending = hooks.mutate(operation, view);
      if (pending) return pending.then(keep);
      keep();
    },
    validate: (operation, subject) => hooks.validate(operation, shown(subject)),
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
