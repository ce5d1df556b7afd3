/** When a PersistentVolume came to its phase (persistentvolume/strategy.go). */
import { formatTime } from '@coracle/apimachinery/meta/object';
import { type JsonObject, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';

interface About {
  readonly now: number;
}

export function prepareNewVolume(volume: Record<string, unknown>, { now }: About): void {
  volume['status'] = { ...objectAt(volume, 'status'), lastPhaseTransitionTime: formatTime(now) };
}

export function prepareVolumeStatus(volume: Record<string, unknown>, old: JsonObject, { now }: About): void {
  if (textAt(volume, 'status', 'phase') === textAt(old, 'status', 'phase')) return;
  const sent = valueAt(volume, 'status', 'lastPhaseTransitionTime');
  const isOwn = sent !== undefined && sent !== null && sent !== valueAt(old, 'status', 'lastPhaseTransitionTime');
  if (!isOwn) volume['status'] = { ...objectAt(volume, 'status'), lastPhaseTransitionTime: formatTime(now) };
}
