/** `coracle rbac`: the accounts and rights that agents and controllers need on a cluster of somebody else's, as YAML. */
import { stringify } from 'yaml';
import { agentManifests, controllerManifests, STARTER_ACCOUNT } from '../compose/component-policy.ts';
import { AGENT_ACCOUNT, COMPONENT_NAMESPACE, chooseComponents } from '../compose/components.ts';
import type { Manifest } from '../compose/policy-manifest.ts';
import { type CommandContext, failingAs, textFlag, UsageError } from './command.ts';

/** Prints; whoever applies it must hold these rights. */
export async function rbac({ words, flags, print, note }: CommandContext): Promise<number> {
  const [what, ...more] = words;
  if ((what !== undefined && what !== 'node' && what !== 'controllers') || more.length > 0)
    throw new UsageError('usage: coracle rbac [node | controllers]');
  const list = textFlag(flags, 'controllers');
  if (what === 'node' && list !== undefined) throw new UsageError('--controllers is for coracle rbac controllers');
  const manifests: Manifest[] = [];
  const starters: string[] = [];
  if (what !== 'node') {
    const chosen = failingAs(UsageError, '', () => chooseComponents(list ?? '*', { external: true }));
    manifests.push(...controllerManifests(chosen));
    starters.push(STARTER_ACCOUNT);
  }
  if (what !== 'controllers') {
    manifests.push(...agentManifests().filter(({ kind }) => kind !== 'Namespace' || manifests.length === 0));
    starters.push(AGENT_ACCOUNT);
  }
  print(manifests.map((manifest) => stringify(manifest, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n'));
  for (const starter of starters)
    note(
      `a token for the kubeconfig of coracle ${starter === AGENT_ACCOUNT ? 'node' : 'controllers'}: kubectl create token ${starter} -n ${COMPONENT_NAMESPACE} --duration 720h`,
    );
  return 0;
}
