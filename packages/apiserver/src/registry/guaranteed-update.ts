/** What PUT, PATCH and the writing subresources do with the newest state of an object, from its stages to the store. */

import type { WriteCheck } from '../admission/plugin.ts';
import type { Decision, StoredObject } from '../cache/object-store.ts';
import { isLargeObject } from './large-write.ts';
import { beginUpdate, completeUpdate, updateDecision } from './update-stages.ts';
import { viewWritten } from './versioned-view.ts';
import { ObjectMoved, runChecks } from './write-call.ts';
import type { AdmissionSubject, Completed, Registry, UpdateCall, UpdateStages, WriteResult } from './write-contract.ts';
import { type WriteTarget, writeNewest } from './write-newest.ts';
import { writeObject } from './write-object.ts';

/** Throws ApiError: 404, 409 (stale resourceVersion, uid, or too many conflicts), 422, or what admission says. */
export const guaranteedUpdate = (registry: Registry, call: UpdateCall): Promise<WriteResult> =>
  writeNewest(registry, call, { attempt: (target) => attemptUpdate(registry, call, target), create: call.create });

function stagesOf(registry: Registry, call: UpdateCall, current: StoredObject): UpdateStages {
  const { elsewhere } = registry;
  // Where a webhook converts, stages wait for it, which they only can here.
  const isLarge = elsewhere && call.info.remote === undefined && (call.isLarge || isLargeObject(current.bytes));
  return isLarge ? elsewhere.update(call, current, call.sent?.()) : localStages(registry, call, current);
}

async function attemptUpdate(registry: Registry, call: UpdateCall, target: WriteTarget): Promise<WriteResult> {
  const { info, name } = call;
  const { key, current, old } = target;
  target.pinned = call.pinned;
  const stages = stagesOf(registry, call, current);
  const beginning = stages.begin(old);
  const begun = beginning instanceof Promise ? await beginning : beginning;
  target.pinned = begun.pinned;
  const { object } = begun;
  const owners = object.metadata.managedFields;
  const subject: AdmissionSubject = { name, object, oldObject: old };
  // Awaited only when there is something to wait for: without it, reading and writing are one step nobody can get into.
  const mutating = call.admission.mutate('UPDATE', subject);
  if (mutating) await mutating;
  const asking = call.admission.missingRights?.('UPDATE', { name, object, oldObject: old });
  const errors = asking ? [...begun.errors, ...(await asking)] : begun.errors;
  const isRewritten = subject.rewritten === true;
  const isSameGeneration = subject.sameGeneration === true;
  const completing = stages.complete(object, { old, errors, owners, isRewritten, isSameGeneration });
  const completed = completing instanceof Promise ? await completing : completing;
  const checks: WriteCheck[] = [];
  const validating = call.admission.validate('UPDATE', { name, object: completed.object, oldObject: old, checks });
  if (validating) await validating;
  if (call.dryRun) return { created: false, stored: undefined, ...resultOf(completed) };

  const deciding = completed.decide();
  const decision = deciding instanceof Promise ? await deciding : deciding;
  const write = (latest: StoredObject | undefined): Decision => {
    if (latest?.revision !== current.revision) throw new ObjectMoved();
    runChecks(checks);
    return decision;
  };
  const stored = await writeObject(registry, { info, key, decide: write });
  if (decision.type === 'delete') return { created: false, stored: undefined, ...resultOf(completed) };
  return { created: false, object: await viewWritten(info, stored!), stored };
}

const localStages = (registry: Registry, call: UpdateCall, current: StoredObject): UpdateStages => ({
  begin: (old) => beginUpdate(registry, call, { old, next: call.next }),
  complete(object, { old, ...admitted }) {
    const completed = completeUpdate(registry.clock.now(), call, { object, old, ...admitted });
    const decide = (): ReturnType<typeof updateDecision> =>
      updateDecision(call.info, { object: completed, old, current: current.object });
    return { object: completed, decide };
  },
});

const resultOf = ({ object, isLarge = false }: Completed): Pick<WriteResult, 'object' | 'isLarge'> => ({
  object,
  isLarge,
});
