// The parts of ECharts that share/report/page.js draws with: esbuild makes one script of them (charts.cmake).
import {init, use} from 'echarts/core.js';
import {BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart} from 'echarts/charts.js';
import {AriaComponent, DataZoomInsideComponent, GridComponent, LegendComponent, MarkAreaComponent, ToolboxComponent,
  TooltipComponent, VisualMapContinuousComponent} from 'echarts/components.js';
import {LabelLayout, LegacyGridContainLabel} from 'echarts/features.js';
import {SVGRenderer} from 'echarts/renderers.js';

use([BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart, AriaComponent, DataZoomInsideComponent,
  GridComponent, LegendComponent, MarkAreaComponent, ToolboxComponent, TooltipComponent, VisualMapContinuousComponent,
  LabelLayout, LegacyGridContainLabel, SVGRenderer]);
globalThis.echarts = {init};
