/** `coracle sync ignore`: the fields that the server owns, as the ignore rules of other GitOps tools. */

import { type IgnoredKind, ignoredKinds } from '@coracle/gitops/server-fields/ignore-rules';
import { stringify } from 'yaml';
import { type CommandContext, textFlag, UsageError } from '../command.ts';

/** By tool: YAML with the reason of each rule beside it. */
const TOOLS: Readonly<Record<string, (kinds: readonly IgnoredKind[]) => string>> = { argocd, flux };

export async function ignore({ flags, print }: CommandContext): Promise<number> {
  const tool = textFlag(flags, 'for') ?? '';
  const write = Object.hasOwn(TOOLS, tool) ? TOOLS[tool] : undefined;
  if (!write) throw new UsageError(`sync ignore takes --for ${Object.keys(TOOLS).join(' or --for ')}`);
  print(write(ignoredKinds()));
  return 0;
}

/** Of an Application's spec (argo-cd.readthedocs.io, Diffing Customization). */
function argocd(kinds: readonly IgnoredKind[]): string {
  const lines = [
    '# For the spec of an Application. RespectIgnoreDifferences keeps a sync from taking these fields away.',
    'syncPolicy:',
    '  syncOptions:',
    '    - ServerSideApply=true',
    '    - RespectIgnoreDifferences=true',
    'ignoreDifferences:',
  ];
  for (const { group, kind, pointers, expressions } of kinds) {
    lines.push(`  - group: ${scalar(group)}`, `    kind: ${kind}`);
    if (pointers.length > 0) lines.push('    jsonPointers:');
    for (const { pointer, reason } of pointers) lines.push(...item(reason, pointer));
    if (expressions.length > 0) lines.push('    jqPathExpressions:');
    for (const { jq, reason } of expressions) lines.push(...item(reason, jq));
  }
  return `${lines.join('\n')}\n`;
}

/** Of a HelmRelease's driftDetection, and in the same form of a Kustomization (fluxcd.io, drift ignore rules). */
function flux(kinds: readonly IgnoredKind[]): string {
  const lines = [
    '# For spec.driftDetection of a HelmRelease; the same list is spec.ignore of a Kustomization where Flux has that.',
    '# A Kustomization is applied server-side: of these fields it sees those alone that its manifests declare.',
    'ignore:',
  ];
  for (const { kind, group, pointers, expressions } of kinds) {
    lines.push('  - target:', `      group: ${scalar(group)}`, `      kind: ${kind}`, '    paths:');
    for (const { pointer, reason } of pointers) lines.push(...item(reason, pointer));
    for (const { jq, reason } of expressions)
      lines.push(`      # JSON pointers cannot say this for every item of a list: ${jq} (${reason})`);
  }
  return `${lines.join('\n')}\n`;
}

const item = (reason: string, text: string): string[] => [`      # ${reason}`, `      - ${scalar(text)}`];
const scalar = (text: string): string => stringify(text, { lineWidth: 0 }).trimEnd();
