/**
 * POST `pods/<name>/eviction`: a delete that may be refused. Admission speaks first (KubeVirt turns the eviction of a
 * virt-launcher into a migration there), then the PodDisruptionBudget, then the pod is deleted with the eviction's
 * options.
 */

import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError, notFound } from '@coracle/apimachinery/meta/status';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { StoreKey } from '../../cache/object-store.ts';
import { bodyKind, EVICTION } from '../../kinds/builtin/body-kinds.ts';
import { checkDeletePreconditions, deleteObject } from '../../registry/delete.ts';
import {
  budgetDecision,
  mustNotChange,
  needsNoBudget,
  stillProcessing,
  withDisruption,
  withDisruptionTarget,
} from '../../registry/eviction.ts';
import type { DeleteOptions } from '../../registry/graceful-deletion.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { refuseWhenDurable } from '../../registry/refuse-when-durable.ts';
import { NO_ADMISSION } from '../../registry/write-call.ts';
import type { WriteCall } from '../../registry/write-contract.ts';
import { readDeleteOptions } from '../delete-options.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse, successStatus } from '../responses.ts';
import { writeCall } from '../write-request.ts';
import { checkNamed, namedBody } from './binding.ts';
import { storedObject } from './get.ts';

/** Lost races with other writers of the pod. Upstream's number; here each try begins at once. */
const MAX_TRIES = 20;

export async function evictionVerb(exchange: Exchange): Promise<ApiResponse> {
  const write = parseWriteOptions(exchange.query, 'CreateOptions');
  const eviction = await namedBody(exchange, {
    ...write,
    info: bodyKind(EVICTION)!,
    older: bodyKind({ ...EVICTION, version: 'v1beta1' })!,
  });
  eviction.apiVersion = apiVersionOf(EVICTION);
  const { dryRun } = readDeleteOptions(eviction['deleteOptions'] ?? {});
  const call = writeCall(exchange, { ...write, dryRun: write.dryRun || dryRun });
  const subject = { name: call.name, object: eviction, oldObject: undefined };
  await call.admission.mutate('CREATE', subject);
  checkNamed(exchange, eviction);
  const { options } = readDeleteOptions(eviction['deleteOptions'] ?? {});
  // Unknown pods are distinguished before anyone validates their eviction.
  storedObject(exchange);
  await call.admission.validate('CREATE', subject);
  const key = { prefix: storagePrefix(call.info), namespace: call.namespace, name: call.name };
  await refuseWhenDurable(exchange.server.registry.store, key, () =>
    evict(exchange, { ...call, admission: NO_ADMISSION }, { key, options }),
  );
  return documentResponse(exchange, { status: 201, object: successStatus(201) });
}

async function evict(
  exchange: Exchange,
  call: WriteCall,
  { key, options }: { readonly key: StoreKey; readonly options: DeleteOptions },
): Promise<void> {
  const { registry } = exchange.server;
  const asked = options.preconditions?.resourceVersion;
  /** Writes down why the pod goes, and deletes it: as it was at `expected`, when given. */
  const remove = async (expected: string | undefined): Promise<void> => {
    const marked = await markTarget(exchange, call, { ...options.preconditions, resourceVersion: expected });
    const preconditions = { ...options.preconditions, ...(expected && marked && { resourceVersion: marked }) };
    await deleteObject(registry, { ...call, options: { ...options, preconditions } });
  };
  let pod: Readonly<UnstructuredObject>;
  for (let tries = 1; ; tries++) {
    const found = registry.store.peek(key);
    if (!found) throw notFound(call.info, call.name);
    pod = found.object;
    if (!needsNoBudget(pod)) break;
    const expected = mustNotChange(pod) ? (asked ?? pod.metadata.resourceVersion) : asked;
    try {
      return await remove(expected);
    } catch (error) {
      const isLostRace = error instanceof ApiError && error.reason === 'Conflict' && asked === undefined;
      if (!isLostRace || tries === MAX_TRIES) throw error;
    }
  }
  const decision = budgetDecision(registry.store, pod);
  if (decision.type === 'take') await takeDisruption(exchange, call, decision.budget.name);
  if (decision.type !== 'allowed' || !decision.pinned || asked !== undefined) return remove(asked);
  try {
    // A pod the budget does not count must still be as unready as it was when the budget was asked.
    await remove(pod.metadata.resourceVersion);
  } catch (error) {
    throw error instanceof ApiError && error.reason === 'Conflict' ? stillProcessing(decision.budget) : error;
  }
}

async function takeDisruption(exchange: Exchange, call: WriteCall, name: string): Promise<void> {
  const { registry, resources } = exchange.server;
  const info = resources.lookup('policy', 'v1', 'poddisruptionbudgets')!;
  await guaranteedUpdate(registry, {
    ...call,
    info,
    name,
    subresource: 'status',
    pinned: false,
    patch: true,
    next: (budget) => withDisruption(budget, { pod: call.name, now: registry.clock.now() }),
  });
}

/** Writes down on the pod why it goes; returns the resourceVersion it then has. Throws ApiError 409 when it is another. */
async function markTarget(
  exchange: Exchange,
  call: WriteCall,
  expected: { readonly uid?: string; readonly resourceVersion: string | undefined },
): Promise<string | undefined> {
  const { registry } = exchange.server;
  const { object } = await guaranteedUpdate(registry, {
    ...call,
    subresource: 'status',
    pinned: expected.resourceVersion !== undefined,
    patch: true,
    next(pod) {
      const { uid, resourceVersion } = expected;
      const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
      checkDeletePreconditions(call.info, pod, { preconditions });
      return withDisruptionTarget(pod, registry.clock.now());
    },
  });
  return call.dryRun ? undefined : object.metadata.resourceVersion;
}
