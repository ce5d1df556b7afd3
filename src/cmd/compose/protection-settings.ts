/** The settings of protection as they stand: read anew when a KubeVirt or SSP object changed. */
import { type ProtectionSettings, protectionSettingsOf } from '../../domain/protection/protection-settings.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';

const PREFIXES = ['kubevirt.io/kubevirts', 'ssp.kubevirt.io/ssps'];

export interface ProtectionSettingsSource {
  now(): ProtectionSettings;
  stop(): void;
}

/** Begins to watch. */
export function watchProtectionSettings(
  store: Pick<ObjectStore, 'list' | 'watch' | 'revision'>,
): ProtectionSettingsSource {
  let known: ProtectionSettings | undefined;
  const watches = PREFIXES.map((prefix) =>
    store.watch(prefix, store.revision(), () => {
      known = undefined;
    }),
  );
  return {
    now() {
      known ??= protectionSettingsOf(
        PREFIXES.flatMap((prefix) => store.list(prefix).items.map(({ object }) => object)),
      );
      return known;
    },
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}
