/** Asks the API what became of a migration. */

import { isNotFound } from '@coracle/client/api-failure';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import {
  type MigrationDecision,
  type MigrationEnds,
  migrationDecision,
} from '@coracle/kubevirt/rules/migration/migration-steps';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { isOfOthers } from '../launcher/no-relationship.ts';

/** What the API says now; no decision when it cannot be asked. */
export async function ask(
  launcher: LauncherState,
  ends: MigrationEnds,
): Promise<{ readonly decision: MigrationDecision | undefined; readonly vmi: VirtualMachineInstance | undefined }> {
  const { environment, vmi, record } = launcher;
  const key = {
    namespace: record?.namespace ?? vmi?.metadata.namespace ?? '',
    name: record?.name ?? vmi?.metadata.name ?? '',
  };
  try {
    const newest = await environment.client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal: environment.signal });
    if (newest.metadata.uid === launcher.vmiUid) launcher.vmi = newest;
    return { decision: migrationDecision(newest, ends), vmi: newest };
  } catch (error) {
    environment.signal.throwIfAborted();
    return { decision: isNotFound(error) || isOfOthers(error) ? 'gone' : undefined, vmi: undefined };
  }
}
