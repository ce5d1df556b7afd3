/** PATCH: the current object, the patch, and the same way back as a PUT; computed again when somebody was faster. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { createObject } from '../../registry/create.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { readElsewhere } from '../../registry/update.ts';
import type { FieldManagement, UpdateCall, WriteCall } from '../../registry/write-contract.ts';
import { sentBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { checkPatchOptions, type PatchDocument, patchTypeOf, readPatch } from '../patch-document.ts';
import { applied, appliedAnew, patchedObject } from '../patched-object.ts';
import { parseWriteOptions, type WriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { authorizeCreate, writeCall, writeResponse } from '../write-request.ts';

export async function patchVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info, server } = exchange;
  const representation = representationOf(exchange);
  const type = patchTypeOf(exchange, info);
  const { isLarge } = exchange;
  // A large one is read elsewhere, once there is an object that it is about.
  const patch = isLarge ? undefined : await readAbout(exchange);
  const options = parseWriteOptions(exchange.query, 'PatchOptions');
  checkPatchOptions({ type }, options);
  const call = writeCall(exchange, options);
  const sent = () => sentBody(exchange, 'patch', options);
  const next: UpdateCall['next'] = patch
    ? (current) => patchedObject(exchange, { info, current, patch, options })
    : readElsewhere;
  const update: UpdateCall = {
    ...call,
    sent,
    isLarge,
    pinned: false,
    patch: true,
    ...(type === 'apply' ? applyCall(exchange, call, { patch, options }) : { next }),
  };
  return writeResponse(exchange, { result: await guaranteedUpdate(server.registry, update), representation });
}

/** The patch. One that cannot be read is reported only where there is an object that it could be about. */
async function readAbout(exchange: Exchange): Promise<PatchDocument> {
  try {
    return readPatch(exchange, exchange.resource);
  } catch (error) {
    const isApply = patchTypeOf(exchange, exchange.resource) === 'apply';
    if (!(error instanceof ApiError) || error.code !== 400 || isApply) throw error;
    const call = writeCall(exchange, parseWriteOptions(exchange.query, 'PatchOptions'));
    const next = (): never => {
      throw error;
    };
    await guaranteedUpdate(exchange.server.registry, { ...call, pinned: false, patch: true, next });
    throw error;
  }
}

/**
 * Server-side apply: merges what the manager wants into the live object, creating it when it is missing. No `patch`: it is
 * read elsewhere.
 */
function applyCall(
  exchange: Exchange,
  call: WriteCall,
  { patch, options }: { readonly patch: PatchDocument | undefined; readonly options: WriteOptions },
): Pick<UpdateCall, 'tracked' | 'next' | 'create'> {
  const { registry } = exchange.server;
  const { info, subresource, manager } = call;
  const fields = registry.fields as FieldManagement;
  const applying = { info, subresource, manager, options, fields };
  return {
    tracked: true,
    next: patch ? (live) => applied(exchange, { ...applying, patch, live, now: registry.clock.now() }) : readElsewhere,
    ...(subresource === '' && {
      create: async () => {
        await authorizeCreate(exchange);
        if (patch === undefined)
          return createObject(registry, { ...call, object: sentBody(exchange, 'patch', options) });
        const object = await appliedAnew(exchange, { ...applying, patch, now: registry.clock.now() });
        return createObject(registry, { ...call, object, tracked: true });
      },
    }),
  };
}
