// Types of the dashboard. Grafana's own type of a panel accepts any options, so each kind that we
// use has the type of its options here. The test appends the dashboard.
import type { Dashboard, FieldConfigSource, Panel } from '@grafana/schema';
import type * as bargauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as timeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// Enumerations as the plain words of JSON.
type Plain<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Query = {
  refId: string;
  expr: string;
  datasource: { type: 'prometheus'; uid: string };
  legendFormat?: string;
  instant?: boolean;
};
type Defaults = Omit<FieldConfigSource['defaults'], 'custom' | 'thresholds' | 'mappings'>;
type Typed<Kind extends string, Options, Custom = never> = Plain<
  Omit<Panel, 'type' | 'options' | 'targets' | 'fieldConfig'>
> & {
  type: Kind;
  options: Plain<Options>;
  targets: Query[];
  fieldConfig: {
    overrides: [];
    defaults: Plain<Defaults> & { custom?: Plain<Custom>; thresholds?: unknown; mappings?: unknown };
  };
};
type AnyPanel =
  | Typed<'stat', stat.Options>
  | Typed<'bargauge', bargauge.Options>
  | Typed<'state-timeline', timeline.Options, timeline.FieldConfig>
  | Typed<'timeseries', timeseries.Options, timeseries.FieldConfig>;
type Checked = Plain<Omit<Dashboard, 'panels'>> & { panels: AnyPanel[] };

export const dashboard: Checked =
