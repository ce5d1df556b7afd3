/** What a sync gets its objects from, checked: which source, from where, how often. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { wantedRef } from '../git/git-source.ts';
import { parseRepositoryUrl, shownUrl, treePath } from '../git/repository-url.ts';
import { problemsOf, versionOf } from '../helm/helm-source.ts';
import type { GitSpec, GitStatus, HelmSpec, HelmStatus, OciSpec, OciStatus, SyncSpec } from '../kinds/kinds.ts';
import { imageOf } from '../oci/oci-source.ts';
import type { SourceContext } from '../plan/managed-object.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { StageOrigin } from '../status/sync-status.ts';

export type SourceSpec =
  | { readonly type: 'git'; readonly git: GitSpec; readonly depth?: number }
  | { readonly type: 'oci'; readonly oci: OciSpec }
  | { readonly type: 'helm'; readonly helm: HelmSpec };

export interface SourcePlan {
  readonly spec: SourceSpec;
  /** In the source; '' = its root. */
  readonly dir: string;
  readonly periodMs: number;
  readonly context: SourceContext;
  /** As the stages show it; of a commit, where that makes a difference. */
  readonly originOf: (commit?: string) => StageOrigin;
}

/** Milliseconds of a duration; `otherwise` when there is none. */
type Milliseconds = (text: string | undefined, otherwise: number, name: string, least: number) => number;

const PERIOD_MS = 15_000;
const HELM_PERIOD_MS = 60 * 60_000;
const SHORTEST_PERIOD_MS = 10;
/** What works with these is a secret. */
const WITH_SECRET = new Set(['ssh', 'token', 'cookiefile', 'githubapp']);
const GIT_AUTH = new Set(['none', 'ssh', 'token', 'cookiefile']);
/** Why the others are not done here, and what serves instead. */
const NO_GIT_AUTH: Readonly<Record<string, string>> = {
  githubapp:
    'tokens of a GitHub App are not supported here; use token with one that was issued, or ssh with a deploy key',
  gcenode: 'the metadata server of Google Cloud is not used here; use token, ssh or cookiefile',
  gcpserviceaccount: 'tokens of Google service accounts are not supported here; use token, ssh or cookiefile',
};
const TYPES = ['git', 'oci', 'helm'] as const;

/** Reads it; what is wrong is added to `wrong`, and then the plan may be undefined. */
export function planSource(
  spec: DeepReadonly<SyncSpec>,
  sync: SyncIdentity,
  { wrong, ms }: { readonly wrong: string[]; readonly ms: Milliseconds },
): SourcePlan | undefined {
  const { sourceType = 'git' } = spec;
  for (const other of TYPES)
    if (other !== sourceType && spec[other]) wrong.push(`spec.${other} does not go with sourceType ${sourceType}`);
  switch (sourceType) {
    case 'git': {
      const git = spec.git as GitSpec | undefined;
      if (!git) break;
      checkGit(git, sync, wrong);
      return {
        spec: {
          type: 'git',
          git,
          ...(spec.override?.gitSyncDepth !== undefined && { depth: spec.override.gitSyncDepth }),
        },
        ...placeOf(git, wrong),
        periodMs: ms(git.period, PERIOD_MS, 'spec.git.period', SHORTEST_PERIOD_MS),
        ...shownGit(git),
      };
    }
    case 'oci': {
      const oci = spec.oci as OciSpec | null | undefined;
      if (!oci) break;
      checkOci(oci, wrong);
      const ociStatus: OciStatus = { image: oci.image, dir: oci.dir || '/' };
      return {
        spec: { type: 'oci', oci },
        ...placeOf(oci, wrong),
        periodMs: ms(oci.period, PERIOD_MS, 'spec.oci.period', SHORTEST_PERIOD_MS),
        context: { repo: oci.image },
        originOf: () => ({ ociStatus }),
      };
    }
    case 'helm': {
      const helm = spec.helm as HelmSpec | null | undefined;
      if (!helm) break;
      checkHelm(helm, sync, wrong);
      return {
        spec: { type: 'helm', helm },
        dir: '',
        periodMs: ms(helm.period, HELM_PERIOD_MS, 'spec.helm.period', SHORTEST_PERIOD_MS),
        ...shownHelm(helm),
      };
    }
    default:
      wrong.push(`sourceType ${sourceType} is not git, oci or helm`);
      return undefined;
  }
  wrong.push(`spec.${sourceType} is missing`);
  return undefined;
}

function placeOf({ dir = '' }: { readonly dir?: string }, wrong: string[]): { dir: string } {
  try {
    return { dir: treePath(dir) };
  } catch (error) {
    wrong.push((error as Error).message);
    return { dir: '' };
  }
}

function shownGit(git: GitSpec): Pick<SourcePlan, 'context' | 'originOf'> {
  const gitStatus: GitStatus = {
    repo: shownUrl(git.repo),
    revision: git.revision || 'HEAD',
    branch: git.branch || 'master',
    dir: git.dir || '/',
  };
  const { repo, branch, revision: rev } = gitStatus;
  return { context: { repo, branch, rev }, originOf: () => ({ gitStatus }) };
}

function checkGit(git: GitSpec, { kind }: SyncIdentity, wrong: string[]): void {
  for (const check of [() => parseRepositoryUrl(git.repo, { allowsFile: kind === 'RootSync' }), () => wantedRef(git)]) {
    try {
      check();
    } catch (error) {
      wrong.push((error as Error).message);
    }
  }
  const secret = git.secretRef?.name ?? '';
  if (!GIT_AUTH.has(git.auth))
    wrong.push(
      `git auth ${git.auth} is not supported: ${NO_GIT_AUTH[git.auth] ?? 'it is none, token, ssh or cookiefile'}`,
    );
  else if (WITH_SECRET.has(git.auth) && secret === '') wrong.push(`git auth ${git.auth} needs spec.git.secretRef`);
  else if (!WITH_SECRET.has(git.auth) && secret !== '') wrong.push(`git auth ${git.auth} takes no spec.git.secretRef`);
  if (git.auth === 'cookiefile' && !/^https?:/i.test(git.repo))
    wrong.push('git auth cookiefile goes with http:// and https:// repositories');
  if (git.proxy && git.auth === 'ssh') wrong.push('spec.git.proxy does not go with auth ssh');
}

function checkOci(oci: OciSpec, wrong: string[]): void {
  try {
    imageOf(oci);
  } catch (error) {
    wrong.push(`spec.oci.image: ${(error as Error).message}`);
  }
  if (oci.auth !== 'none')
    wrong.push(
      `oci auth ${oci.auth} is not supported: it takes credentials from services of Google Cloud; it is none, for images that anybody may pull`,
    );
}

function shownHelm(helm: HelmSpec): Pick<SourcePlan, 'context' | 'originOf'> {
  const { chart, version = '' } = helm;
  const repo = shownUrl(helm.repo);
  return {
    context: { repo, ...(version !== '' && { rev: version }) },
    originOf: (commit) => {
      const helmStatus: HelmStatus = { repo, chart, version: commit === undefined ? version : versionOf(helm, commit) };
      return { helmStatus };
    },
  };
}

function checkHelm(helm: HelmSpec, { kind }: SyncIdentity, wrong: string[]): void {
  wrong.push(...problemsOf(helm));
  const secret = helm.secretRef?.name ?? '';
  if (helm.auth !== 'none' && helm.auth !== 'token')
    wrong.push(
      `helm auth ${helm.auth} is not supported: it takes credentials from services of Google Cloud; it is none or token`,
    );
  else if (helm.auth === 'token' && secret === '') wrong.push('helm auth token needs spec.helm.secretRef');
  else if (helm.auth === 'none' && secret !== '') wrong.push('helm auth none takes no spec.helm.secretRef');
  for (const field of ['namespace', 'deployNamespace'] as const)
    if (kind === 'RepoSync' && helm[field]) wrong.push(`spec.helm.${field} is for RootSyncs`);
}
