/** `coracle crds`: the definitions of KubeVirt's and Config Sync's kinds for an external cluster, as YAML. */

import { configSyncCrds } from '@coracle/gitops/kinds/definitions';
import { kubevirtCrds } from '@coracle/kubevirt/kinds/kubevirt';
import { stringify } from 'yaml';
import type { CommandContext } from './command.ts';

/** Prints them as they are applied: without the status, which is that cluster's to say. */
export async function crds({ print, note }: CommandContext): Promise<number> {
  const definitions = [...kubevirtCrds(0), ...configSyncCrds(0)].map(
    ({ status: _theirs, ...definition }) => definition,
  );
  print(definitions.map((one) => stringify(one, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n'));
  // Beyond what an annotation holds, in which kubectl keeps what it applied from the client's side.
  note('apply them with: kubectl apply --server-side -f FILE');
  return 0;
}
