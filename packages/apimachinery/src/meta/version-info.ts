/** The `/version` document (apimachinery version.Info). */

/** The Kubernetes release whose behaviour is served; clients compare it, helm and kubectl parse it as semver. */
const KUBERNETES_MINOR = '36';

export interface VersionFacts {
  /** Commit this program was built from; forty hex digits when known. */
  readonly commit?: string;
  /** Whether what runs is that commit and nothing more; absent = not known. */
  readonly treeState?: 'clean' | 'dirty';
  /** RFC 3339. */
  readonly buildDate?: string;
  /** `node v26.0.0`: stands where Go programs name their compiler's version. */
  readonly engine?: string;
  /** `linux/amd64`. */
  readonly platform?: string;
}

/** The version document; facts that are not known are given as clients expect them from an unreleased build. */
export function versionInfo(facts: VersionFacts = {}) {
  return {
    major: '1',
    minor: KUBERNETES_MINOR,
    emulationMajor: '1',
    emulationMinor: KUBERNETES_MINOR,
    minCompatibilityMajor: '1',
    minCompatibilityMinor: String(Number(KUBERNETES_MINOR) - 1),
    gitVersion: `v1.${KUBERNETES_MINOR}.0+coracle`,
    gitCommit: facts.commit ?? '',
    gitTreeState: facts.treeState ?? '',
    buildDate: facts.buildDate ?? '1970-01-01T00:00:00Z',
    goVersion: facts.engine ?? '',
    compiler: 'coracle',
    platform: facts.platform ?? 'linux/amd64',
  };
}

export type VersionInfo = Readonly<ReturnType<typeof versionInfo>>;
