"""The page's style sheet: for a screen from 390 pixels on, and for A4."""
from __future__ import annotations

from .drawings.strip import LATER_COLOR, NOW_COLOR

STYLES = f"""
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:960px;padding:16px;background:#fff;color:#1a1a1a;
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;
-webkit-text-size-adjust:100%;print-color-adjust:exact;-webkit-print-color-adjust:exact}}
h1{{font-size:1.5em;margin:0 0 .3em;overflow-wrap:anywhere}}
h2{{font-size:1.2em;margin:1.6em 0 .4em;border-bottom:1px solid #999;break-after:avoid}}
h3{{font-size:1em;margin:1em 0 .2em;break-after:avoid}}
p{{margin:.4em 0;overflow-wrap:anywhere;max-width:75ch}}
.verdict{{font-size:1.15em;border-left:5px solid {LATER_COLOR};padding:.3em .8em;margin:.8em 0}}
.warning{{border-left:5px solid {NOW_COLOR};padding:.3em .8em;font-weight:bold}}
.note{{color:#444;font-size:.9em}}
svg{{display:block;width:100%;max-width:680px;height:auto;break-inside:avoid;margin:.3em 0}}
figure{{margin:0;break-inside:avoid}}
.scroll{{overflow-x:auto;margin:.4em 0;
background:linear-gradient(to left,#fff 20px,transparent) right/60px 100% local no-repeat,
linear-gradient(to left,#0003,transparent) right/14px 100% scroll no-repeat}}
table{{border-collapse:collapse;font-size:.9em;font-variant-numeric:tabular-nums}}
th,td{{padding:2px 8px;text-align:left;white-space:nowrap;vertical-align:top;
border-bottom:1px solid #ccc}}
thead th{{border-bottom:2px solid #666;vertical-align:bottom}}
tbody th{{font-weight:normal}}
.n{{text-align:right}}
td.text,th.text,.matrix th{{white-space:normal}}
td.text{{min-width:9em;overflow-wrap:anywhere}}
.long{{white-space:normal;min-width:15em;overflow-wrap:anywhere}}
.matrix thead th{{min-width:4.5em;overflow-wrap:anywhere}}
.matrix tbody th{{min-width:8em}}
.matrix thead th:first-child,.matrix tbody th{{overflow-wrap:break-word}}
tr{{break-inside:avoid}}
thead{{display:table-header-group}}
.bar{{min-width:120px;width:220px}}
.bar i,.bar b{{display:block;height:6px;margin:1px 0}}
.bar i{{background:{NOW_COLOR}}}
.bar b{{background:{LATER_COLOR}}}
.key i,.key b{{display:inline-block;width:14px;height:8px;margin:0 4px 0 10px}}
.key i{{background:{NOW_COLOR}}}
.key b{{background:{LATER_COLOR}}}
.matrix td{{text-align:right}}
.total{{font-weight:bold}}
pre{{font-size:.8em;overflow-x:auto;background:#f4f4f4;padding:8px}}
summary{{cursor:pointer;padding:.3em 0;font-weight:bold}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:.5em 0;font-size:.9em}}
dt{{color:#444}}
dd{{margin:0;overflow-wrap:anywhere}}
@media (max-width:600px){{body{{padding:10px}}th,td{{padding:2px 5px}}
tbody th{{position:sticky;left:0;background:#fff;box-shadow:inset 0 -1px #ccc}}
.bar{{min-width:70px;width:70px}}dl{{grid-template-columns:1fr}}dd{{margin:0 0 4px}}}}
@page{{size:A4;margin:13mm}}
@media print{{body{{max-width:none;padding:0;font-size:9.5pt}}
.scroll{{overflow:visible;background:none}}svg{{max-width:135mm}}.keep{{break-inside:avoid}}
table{{font-size:8pt}}th,td{{padding:1px 5px}}
.long{{min-width:8em}}.matrix thead th{{min-width:0}}.matrix tbody th{{min-width:4em}}
pre{{white-space:pre-wrap}}.bar{{width:150px}}}}
"""
