// CUDA text of the special functions; written by scripts/cuda_special from special_math.hpp,
// special_tables.hpp and special_functions.cpp of src/trace/numerics.
#include "special_text.hpp"

// clang-format off

namespace vt::detail::cuda {

const SpecialText special_texts[] = {
    {"table_gamma_2",
     "",
     R"cuda(
__constant__ double table_gamma_2[] = {0.0, 2.0, 0.999999999999999999, 0.211392167549233388,
 0.102960082606610166, 0.0101971149058966174, 0.00464056317208666557, -8.34318983803870509e-6,
 0.000174281964447081619, -0.0000222862939691357501, 8.2184889580073453e-6, -1.79604913759775251e-6,
 4.78897392487199013e-7, -1.17630870663495599e-7, 2.97000826629771277e-8, -7.44567892285999347e-9,
 1.86624860984541502e-9, -4.43011534811944978e-10, 1.10102171441211424e-10,
 -3.94345991869345182e-11, 1.00196653427131006e-11};
)cuda"},
    {"table_gamma_star",
     "",
     R"cuda(
__constant__ double table_gamma_star[] = {0.0588235294117647059, 17.0, 1.00491342743855719,
 0.00492434449709172979, 0.0000103663748735638151, -5.51222196385066887e-7, 6.68640577704046943e-12,
 5.39683697052639922e-10, -6.84253547508969603e-12, -1.26083411628354314e-12,
 4.82586719808530406e-14, 4.67019971298994763e-15};
)cuda"},
    {"table_erfcx",
     "",
     R"cuda(
__constant__ double table_erfcx[] = {0.0, 1.0, 1.27697838155252872, -0.0927638265857459179,
 -0.166030397615289197, 0.16405128003343033, -0.0542200009920511566, -0.00803401508197271426,
 0.00872265387609432642, 0.00127133895807319527, -0.0014568139519915006, -0.000454340755984537675,
 0.000206367246912741267, 0.000151038740839636897, -1.51000629815997621e-6,
 -0.0000364216944607881239, -0.0000134922921950497711, 3.70648076874482247e-6,
 5.22172304880583378e-6, 1.51145904851150002e-6, -6.88947173496477915e-7, -8.43733289365397551e-7,
 -2.76229426031603801e-7, 1.44200433084413109e-7, 1.79467464004240649e-7, 2.61164149391806392e-8,
 -4.50124167952207879e-8, -1.71676351753216529e-8, 4.72854907880532082e-9, 2.57783634713309671e-9};
)cuda"},
    {"table_erf_inv_low",
     "",
     R"cuda(
__constant__ double table_erf_inv_low[] = {2.505, 0.399201596806387226, 1.50264244790511755,
 0.617729016355963529, -0.0263304793655476044, -0.0196226439867539261, 0.0085888405407738246,
 -0.000502882262881942196, -0.000840053157000389132, 0.000296632111015139353,
 0.0000200460707941276486, -0.0000420070129282933475, 8.89084866510374177e-6,
 2.86958236191325759e-6, -1.89517367085847969e-6, 1.45112535932691576e-7, 2.03026237861999338e-7,
 -7.32715723996244607e-8, -6.56056900854189098e-9, 1.13480854245397072e-8, -2.08320091902772423e-9,
 -9.95676664155659406e-10, 4.59629266095583748e-10, 3.86347852939535433e-11,
 -3.96874436600667323e-11};
)cuda"},
    {"table_erf_inv_middle",
     "",
     R"cuda(
__constant__ double table_erf_inv_middle[] = {2.92, 1.44927536231884058, 2.75290738648022778,
 0.690003333124971445, 0.00548347555913416452, -0.00318856653378065009, 0.00164402544487224381,
 -0.00066968478809769836, 0.0001626527490370713, 6.11631989325278408e-6, -0.0000227138160179739087,
 8.22495893000619537e-6, -3.98354926480383142e-7, -7.84333448864046322e-7, 3.10328585382109468e-7,
 -2.08228199553293599e-8, -2.49198358583610614e-8, 1.03460656589689278e-8, -9.16382128835811982e-10,
 -7.94118992082716635e-10, 3.31778778259811535e-10, 3.83744528932795779e-12,
 -2.25539993908936102e-11};
)cuda"},
    {"table_erf_inv_high",
     "",
     R"cuda(
__constant__ double table_erf_inv_high[] = {5.1, 0.662251655629139073, 4.95093485307887429,
 1.52550251239845953, -0.000453418106337949188, -0.000642155179434399517, 0.000347283936633487836,
 -0.000134731345410925865, 0.0000461109969152086284, -0.0000148757191106895144,
 4.84154333652838946e-6, -1.85399009793865987e-6, 1.02044244168176474e-6, -7.59369044270625944e-7,
 5.98522866366789366e-7, -4.32777481432489918e-7, 2.69256712914044986e-7, -1.33611475640976555e-7,
 4.4544910635586247e-8, -4.40509266903662206e-9, -6.47209798733724486e-9, 8.71101028409793441e-9,
 -6.37741276176644079e-9, 1.28116620619868413e-9, 9.53851488116215534e-10,
 -4.10739618206288786e-10};
)cuda"},
    {"table_erf_inv_higher",
     "",
     R"cuda(
__constant__ double table_erf_inv_higher[] = {9.8, 0.311526479750778816, 9.68940106725394979,
 3.22961885035367702, -0.00372101942512091505, 0.00063175523379605723, -0.0000640732643585076733,
 -0.0000158744353747134764, 0.0000150233859211254046, -7.58402471066911765e-6,
 3.21095167767362219e-6, -1.24982563817405099e-6, 4.62933325430296811e-7, -1.65841803483902282e-7,
 5.78660224075200085e-8, -1.9848109746786951e-8, 6.87620753503168585e-9, -2.30027103931370057e-9,
 6.14419562485580698e-10, -1.97177736370279842e-10, 1.31553881480451e-10, -4.27901990165407691e-11};
)cuda"},
    {"table_erf_inv_highest",
     "",
     R"cuda(
__constant__ double table_erf_inv_highest[] = {20.195, 0.138792505204718945, 20.1235108144450853,
 7.22170113862484874, -0.00439295465086130801, 0.0011958921249165119, -0.000327493377256847306,
 0.0000885887924002137216, -0.0000232226206698905551, 5.72746343625849754e-6,
 -1.24742956397405234e-6, 1.93664302502541709e-7, 1.13256986529260789e-8, -2.99150770418372825e-8,
 1.87187955546851153e-8, -9.36200620911451619e-9, 4.69282457905494596e-9, -2.006995604264471e-9,
 4.1943549350888592e-10, -1.58076753217688841e-10, 2.50368549055855186e-10,
 -9.8735449401895604e-11};
)cuda"},
    {"table_i0_small",
     "",
     R"cuda(
__constant__ double table_i0_small[] = {0.0, 0.125, 1.0, 7.99999999999999988, 16.0000000000000058,
 14.2222222222221127, 7.11111111111220368, 2.27555555554894331, 0.50567901237205347,
 0.0825598386772318593, 0.0103199799893738524, 0.00101925705546628167, 0.0000815408133118623082,
 5.39092461558438841e-6, 2.99619651974127462e-7, 1.4127949754979373e-8, 5.94177096500523386e-10,
 1.73807666203688187e-11, 1.02626679571701956e-12};
)cuda"},
    {"table_i1_small",
     "",
     R"cuda(
__constant__ double table_i1_small[] = {0.0, 0.125, 0.999999999999999998, 4.00000000000000045,
 5.33333333333331411, 3.55555555555587786, 1.42222222221938593, 0.379259259274343442,
 0.0722398588539067946, 0.0103199799704922358, 0.0011466642095879797, 0.000101925998139089087,
 7.41253220523936973e-6, 4.49425108929287172e-7, 2.29590553894087843e-8, 1.03964210466927969e-9,
 3.25980112501492784e-11, 2.05290944847761358e-12};
)cuda"},
    {"table_i0e_large",
     "",
     R"cuda(
__constant__ double table_i0e_large[] = {0.0625, 16.0, 0.402176509445008077, 0.00336055198366786155,
 0.000136216074391930508, 0.0000111430337909320378, 1.48384756582792484e-6, 2.97359858856739241e-7,
 8.87221973790405898e-8, 3.93258433455295129e-8, 2.15483779747911117e-8, 7.55469188124885382e-9,
 -6.74765795610483591e-9, -1.34089175400899599e-8, -5.40477156758942822e-9, 7.55258306212403525e-9,
 7.43046465034743928e-9, -3.50596653088055531e-9, -5.9535694382990932e-9, 1.52008169539389376e-9,
 3.63795463593627498e-9, -5.715843864213651e-10, -1.61898068364763877e-9, 1.52792026950274987e-10,
 4.57708763172984405e-10, -2.02606042874967941e-11, -6.06763157074484968e-11};
)cuda"},
    {"table_i1e_large",
     "",
     R"cuda(
__constant__ double table_i1e_large[] = {0.0625, 16.0, 0.389398459025872328, -0.0097495771932357362,
 -0.000219235763833889284, -0.0000150385472005672167, -1.8349101326980947e-6,
 -3.48385576104429472e-7, -1.00012882948648887e-7, -4.31291772917834852e-8, -2.33739282081421521e-8,
 -8.42776609373523992e-9, 6.73446481529889433e-9, 1.40342387820674453e-8, 5.97443760804976367e-9,
 -7.64239413436432097e-9, -7.88835150788415002e-9, 3.4262341490092062e-9, 6.24274121982072755e-9,
 -1.43872505330578011e-9, -3.7946708962435705e-9, 5.29562544117365938e-10, 1.68489844799351084e-9,
 -1.40116251798223632e-10, -4.75881883879019902e-10, 1.85151188289461922e-11,
 6.30596519729206989e-11};
)cuda"},
    {"table_k0_small",
     "",
     R"cuda(
__constant__ double table_k0_small[] = {0.125, 8.0, -0.520694205954776824, 0.0602643124055207194,
 0.00381293916423520403, 0.0000707386828628526977, 6.56662602575352663e-7, 3.69922007121598932e-9,
 1.40482972853535258e-11, 3.84702604533583978e-14};
)cuda"},
    {"table_k1_small",
     "",
     R"cuda(
__constant__ double table_k1_small[] = {0.125, 8.0, 0.06745843714468948, -0.0898857570618413574,
 -0.00295115415739041153, -0.0000385671560153766534, -2.78686788790708141e-7,
 -1.28884522595903432e-9, -4.15639526935148936e-12, -9.89683318876883807e-15,
 -1.81294952771353241e-17};
)cuda"},
    {"table_k0e_middle",
     "",
     R"cuda(
__constant__ double table_k0e_middle[] = {0.666666666666666667, 3.0, 1.17356284848878571,
 -0.0316420775468852467, 0.00287875791833058815, -0.000392106134698514908, 0.0000662811309581013994,
 -0.000012867992166130967, 2.75538360113593159e-6, -6.35192352211533803e-7, 1.55184298589379065e-7,
 -3.97435680712275962e-8, 1.05801449933112731e-8, -2.91250280703327961e-9, 8.34847626971417694e-10,
 -2.43594413399294807e-10, 6.29772148522679593e-11, -1.84921352300515528e-11,
 1.0705451355656406e-11, -3.49486990597290513e-12};
)cuda"},
    {"table_k1e_middle",
     "",
     R"cuda(
__constant__ double table_k1e_middle[] = {0.666666666666666667, 3.0, 1.52256102792253396,
 0.11889162240532232, -0.00587443163891368135, 0.00066123157845541741, -0.000101369565300932309,
 0.000018520831096463777, -3.80286545673720875e-6, 8.49889928160356901e-7, -2.02705989584518425e-7,
 5.09230516327057352e-8, -1.33433146302756813e-8, 3.62453027261861112e-9, -1.02658773813666153e-9,
 2.96555506320078406e-10, -7.63557696053977356e-11, 2.22632495494560656e-11,
 -1.26710195442282543e-11, 4.11136444016800942e-12};
)cuda"},
    {"table_k0e_large",
     "",
     R"cuda(
__constant__ double table_k0e_large[] = {0.166666666666666667, 6.0, 1.22930859132786383,
 -0.0221798575832872447, 0.00159542916702918363, -0.000191508963752149847, 0.0000308376456739346962,
 -6.05134250637810627e-6, 1.37284568310177081e-6, -3.48490838956461088e-7, 9.68278127916038514e-8,
 -2.89911796514499825e-8, 9.25901288042426971e-9, -3.12239401617703108e-9, 1.07477556079769924e-9,
 -3.88578805712668784e-10, 1.87189680241216219e-10, -8.0574827969022099e-11,
 -2.85446459830045024e-14, 3.4165892874323822e-12, 1.39396085912962707e-11,
 -6.85277282853288509e-12};
)cuda"},
    {"table_k1e_large",
     "",
     R"cuda(
__constant__ double table_k1e_large[] = {0.166666666666666667, 6.0, 1.32805433100797128,
 0.071552727423340962, -0.00284871783539908352, 0.000286343575594596346, -0.0000422320371343586076,
 7.85988738407130035e-6, -1.72069729624173375e-6, 4.25682087370444404e-7, -1.1598409202668793e-7,
 3.4195759505993314e-8, -1.07847406567280946e-8, 3.599205802116302e-9, -1.22962076967604053e-9,
 4.41549538138803162e-10, -2.09775470227004463e-10, 8.96411758026368514e-11,
 -5.62702497382854365e-13, -3.48505634407830576e-12, -1.52851065011590536e-11,
 7.4866413841263197e-12};
)cuda"},
    {"table_j0_small",
     "",
     R"cuda(
__constant__ double table_j0_small[] = {12.5, 0.08, 0.00318735563039323854, -0.0019210870437164044,
 0.000487682717765584112, -0.0000712170524057585314, 6.85495484719937292e-6,
 -4.70629166457061004e-7, 2.42862203802542306e-8, -9.7814389467263529e-10, 3.16372398919627175e-11,
 -8.40418471939477739e-13, 1.86886727449788859e-14, -3.52449113008726999e-16};
)cuda"},
    {"table_j1_small",
     "",
     R"cuda(
__constant__ double table_j1_small[] = {12.5, 0.08, -0.0158759543116454814, 0.0130907775218100285,
 -0.00424022599339572262, 0.000755254043295128627, -0.0000859295623206713344,
 6.81468389517661457e-6, -3.99138117234974094e-7, 1.79951599254199199e-8, -6.44312553366543074e-10,
 1.87738104700603878e-11, -4.54489298036647838e-13, 9.26868963791752811e-15};
)cuda"},
    {"table_y0_small",
     "",
     R"cuda(
__constant__ double table_y0_small[] = {12.5, 0.08, 0.483724857810299504, -0.432655822285512518,
 -0.470576365529728804, 0.388516399565709418, -0.111516821843286181, 0.0176353453893387589,
 -0.00180280966655260233, 0.000129946290920821696, -6.98550436774249965e-6, 2.91422068896370877e-7,
 -9.72096449873514587e-9, 2.65399752486258185e-10, -6.04318008197041671e-12,
 1.16660395307468903e-13, -1.93053293406673529e-15};
)cuda"},
    {"table_y1_small",
     "",
     R"cuda(
__constant__ double table_y1_small[] = {12.5, 0.08, 0.139749390335688049, 0.0910865083844844369,
 -0.163120203581187154, 0.0663469535477910705, -0.0134334337408181534, 0.00166880313286359421,
 -0.000141418357944917787, 8.73309830484877525e-6, -4.11377807736960883e-7, 1.52889018257371398e-8,
 -4.6013042449452644e-10, 1.14489438380499816e-11, -2.39547659784351096e-13,
 4.27790760124764507e-15, -6.5878395019196786e-17};
)cuda"},
    {"table_p0",
     "",
     R"cuda(
__constant__ double table_p0[] = {0.02, 50.0, 0.998634765909199059, -0.00132749312720040036,
 0.0000349173058125434833, -2.45996332148489113e-6, 2.97590054747119026e-7, -5.08643230838394018e-8,
 1.10587871265084552e-8, -2.87054361492325738e-9, 8.53733389899817075e-10, -2.85179457972969392e-10,
 1.04460840501449214e-10, -3.53866292289677534e-11, 1.25880024302486665e-11,
 -1.36373079144395611e-11, 8.3575914284684866e-12, 3.41531154257287282e-12,
 -2.83957866887433919e-12, -2.23539115491204327e-12, 1.43421444847176431e-12};
)cuda"},
    {"table_q0",
     "",
     R"cuda(
__constant__ double table_q0[] = {0.02, 50.0, -0.123614963526118648, 0.00131421397291024784,
 -0.0000633871544254660037, 6.23911316965568964e-6, -9.40987517680884755e-7, 1.88702978010355727e-7,
 -4.63980354403961222e-8, 1.32965731198003356e-8, -4.29380634386344771e-9, 1.52828436311618609e-9,
 -5.89414239081346591e-10, 2.34047336128333104e-10, -9.68472818068964683e-11,
 6.52587672974208093e-11, -4.03319409394322125e-11, -1.60564755577753284e-11,
 1.95431321084809263e-11, 2.97610392294273725e-11, -2.46544551752696742e-11,
 -1.43573981932436949e-11, 1.17812438658683618e-11, 4.3654360757712898e-12,
 -3.23877683886050838e-12};
)cuda"},
    {"table_p1",
     "",
     R"cuda(
__constant__ double table_p1[] = {0.02, 50.0, 1.00229064625606621, 0.00224146321391719129,
 -0.0000457828065312657038, 2.97862110514417413e-6, -3.46671865141537743e-7, 5.79166784221401543e-8,
 -1.24032152191400418e-8, 3.18495775867394465e-9, -9.3957514137334489e-10, 3.11773707410593564e-10,
 -1.1357643207946473e-10, 3.84518931844338695e-11, -1.36820285588558676e-11, 1.4551592853265442e-11,
 -8.87874317362722012e-12, -3.59067384008434775e-12, 2.9881368885935019e-12,
 2.36852252818676607e-12, -1.51681185261177994e-12};
)cuda"},
    {"table_q1",
     "",
     R"cuda(
__constant__ double table_q1[] = {0.02, 50.0, 0.373047433174080204, -0.00186484962184131272,
 0.0000789809417794323906, -7.36992794780562412e-6, 1.07988539420892434e-6, -2.12667409028350803e-7,
 5.16414227980194283e-8, -1.46642292613204044e-8, 4.7041418268704263e-9, -1.66417113065495675e-9,
 6.29674965436526649e-10, -2.52937913096539001e-10, 1.31046143084631835e-10,
 -6.96206109619947234e-11, -6.89205047362355885e-12, 1.6645096069181541e-11, 3.9223397372594716e-11,
 -3.12870294947488203e-11, -1.85408164468403462e-11, 1.50674762186448669e-11,
 6.34939190553892159e-12, -4.58897636975028654e-12};
)cuda"},
    {"table_dawson_small",
     "",
     R"cuda(
__constant__ double table_dawson_small[] = {2.0, 0.5, 0.319994037282704463, -0.299985093206761166,
 0.204979875829127567, -0.107479751605850015, 0.0452947205434805986, -0.0158912360641945403,
 0.00476580489907269058, -0.00124669564474053489, 0.000288999853441614632,
 -0.0000601230194092507386, 0.0000113415012887950271, -1.95661071797832994e-6,
 3.10937709046013802e-7, -4.57994142701068588e-8, 6.2854982744520707e-9, -8.06263500439689804e-10,
 9.73671110114104704e-11, -1.17007515314207736e-11, 1.25783147216922226e-12};
)cuda"},
    {"table_dawson_middle",
     "",
     R"cuda(
__constant__ double table_dawson_middle[] = {3.0, 1.0, 0.178271030610558286, -0.069626183663349724,
 0.0306075203794913809, -0.014797584983415292, 0.00689261728535374743, -0.00235210674908665112,
 0.0000545676544062670931, 0.000625258224911107448, -0.000482585586494456129,
 0.000182777449292728099, -0.0000131493283763109648, -0.0000260598893651164224,
 0.0000152214133759556792, -3.01609432342924283e-6, -8.81671872335851467e-7, 7.54897792103595358e-7,
 -1.73200079877401256e-7, -2.77983570356715625e-8, 2.88472909847329106e-8, -6.07457654548505595e-9,
 -1.28539985832372955e-9, 8.80333225579344628e-10, -3.8355243678379208e-11,
 -4.37487959866530148e-11};
)cuda"},
    {"table_dawson_large",
     "",
     R"cuda(
__constant__ double table_dawson_large[] = {0.03125, 32.0, 1.0164219728980835,
 0.0172921462896297773, 0.000953664547521947762, 0.0000958518741893379369, 0.0000150153555704955993,
 3.47585730585396808e-6, 1.19364231151987172e-6, 5.94148758234160917e-7, 3.29830337272745603e-7,
 7.26008447051353041e-8, -1.82151348172923168e-7, -2.51246766385172295e-7, -4.00952015929448155e-8,
 1.91703700225919053e-7, 1.11776126540211079e-7, -1.2648268230427204e-7, -1.11782868290616089e-7,
 8.13065696232362816e-8, 8.41011041727727813e-8, -4.64610832843214463e-8, -4.89284652198620563e-8,
 2.03053566877830904e-8, 2.04965985781671949e-8, -5.70327362762602181e-9, -5.41602864100768736e-9,
 7.51471625985412001e-10, 6.70278356572287392e-10};
)cuda"},
    {"table_e1_small",
     "",
     R"cuda(
__constant__ double table_e1_small[] = {0.5, 2.0, -0.133373585783784498, 0.393469340287366576,
 -0.0451020052155249319, 0.00479589265565689551, -0.000437905639072711938, 0.0000344231259911685163,
 -2.36082288702093691e-6, 1.43197086124611392e-7, -7.77461368291180797e-9, 3.8172114273549647e-10,
 -1.70965489077552147e-11, 7.03707302138894277e-13, -2.6899171572523867e-14,
 9.52064833582649588e-16};
)cuda"},
    {"table_e1_large",
     "",
     R"cuda(
__constant__ double table_e1_large[] = {0.25, 1.33333333333333333, 0.85211088142366101,
 0.180264461667145817, -0.0451680505528417741, 0.017605114271001345, -0.0069532705125474283,
 0.00308227662130723793, -0.00138941597527652835, 0.000660560480894854913, -0.000318173268483544239,
 0.000158052613637534332, -0.0000792827120223843628, 0.0000405824486333751391,
 -0.0000209259031200091315, 0.0000109604685223484935, -5.77187004671636934e-6,
 3.02519715977829668e-6, -1.60102549366132987e-6, 9.85107227329788679e-7, -5.6464763082780637e-7,
 6.73642219839087022e-8, 1.16961239387235942e-8, 3.3659259649268789e-7, -2.37734333739104068e-7,
 -2.20875370898980814e-7, 1.61925772882340153e-7, 1.63533970870875727e-7, -1.10833890915328378e-7,
 -5.9353999733918956e-8, 3.90718690971179491e-8, 1.27014546222619106e-8, -7.92014236135975828e-9};
)cuda"},
    {"table_ei_small",
     "",
     R"cuda(
__constant__ double table_ei_small[] = {3.0, 0.333333333333333333, 2.98677224343598594,
 3.85356755502429739, 3.43477058513744086, 2.32172009629081765, 1.26645768150805413,
 0.58007760539682456, 0.229255458084133686, 0.0797415605034979218, 0.0247804579411051326,
 0.0069618361196153342, 0.00178512544998286832, 0.000421073800542068761, 0.0000919722425509441622,
 0.0000187068854450502768, 3.56040156777842864e-6, 6.36873666082825358e-7, 1.07427518390422406e-7,
 1.7060187003561098e-8, 2.5855149518422466e-9, 4.11603838179226844e-10, 5.63756380002512765e-11};
)cuda"},
    {"table_ei_6",
     "",
     R"cuda(
__constant__ double table_ei_6[] = {0.125, 24.0, 1.18184798698720798, 0.0909786363034853492,
 0.010157308753613369, -0.00335338866016993309, -0.00112589145109043876, 0.000373138422211687927,
 0.0000420594706522094117, -0.0000455511536120235012, 9.19664280110197725e-6,
 1.43333960480045705e-6, -1.44524034305548436e-6, 4.24528168748437173e-7, -2.96448726559613331e-8,
 -3.05608035890866464e-8, 1.68253120120350813e-8, -4.7613180641408452e-9, 5.7854948851175641e-10,
 2.7905901089352965e-10, -2.23669660606865163e-10, 5.47752902818154186e-11};
)cuda"},
    {"table_ei_12",
     "",
     R"cuda(
__constant__ double table_ei_12[] = {0.0625, 48.0, 1.0723449766623854, 0.0283915499785935623,
 0.00194030402793144693, 0.000268404924618249486, 0.0000396116911336582242, -5.37275975225954058e-6,
 -5.16018243614182216e-6, -2.25476767880729525e-7, 4.92289618724892808e-7, 4.03311716687778158e-9,
 -4.96329862727741291e-8, 7.12104234523714298e-9, 3.6729956984766809e-9, -1.59074051761749086e-9,
 3.32440587792670736e-11, 1.67052042487863754e-10, -5.11617933827701696e-11,
 -6.27007968949712883e-12, 5.14167238709685733e-12};
)cuda"},
    {"table_ei_24",
     "",
     R"cuda(
__constant__ double table_ei_24[] = {0.03125, 96.0, 1.03341356421624105, 0.0119401635678241112,
 0.000298925899136266463, 0.0000123211368333272284, 7.58543478185843907e-7, 6.78877965512117147e-8,
 8.96690118792259007e-9, 1.6475838637777517e-9, 2.9531668726317782e-10, 9.35211188263436792e-13,
 -2.92152858283752721e-11, -9.33407857317687959e-12, 7.07121010723521873e-13,
 7.69619186147415732e-13};
)cuda"},
    {"table_ei_48",
     "",
     R"cuda(
__constant__ double table_ei_48[] = {0.0104166666666666667, 96.0, 1.01064076052001766,
 0.0108722494016779921, 0.000239216918018290897, 8.08024542842829138e-6, 3.7277226295293404e-7,
 2.20410839907194753e-8, 1.60516299466669771e-9, 1.40141221088875597e-10, 1.43620102219723807e-11,
 1.70583452397990243e-12, 2.54398754124720401e-13, 4.08435414251792146e-14};
)cuda"},
    {"table_li2",
     "",
     R"cuda(
__constant__ double table_li2[] = {-0.25, 1.33333333333333333, 0.943601190745053825,
 0.153080956464644466, 0.0426589457381534068, 0.0148089899029072613, 0.00579931325807723401,
 0.00245156429160726109, 0.00109275415809629534, 0.000506420099459439528, 0.00024180278154017455,
 0.000118214275428730135, 0.0000589104783510728936, 0.0000298266846898432343,
 0.0000153127829516860264, 7.9512009068052646e-6, 4.13483206327184198e-6, 2.17411282283967938e-6,
 1.25419838427342643e-6, 6.99432993037992383e-7, 1.75125521216084117e-7, 5.1604570756678575e-8,
 3.34601665455773386e-7, 2.32798732001730488e-7, -2.03696836033656172e-7, -1.51630462524157646e-7,
 1.65990412478612602e-7, 1.12597012577321205e-7, -6.18664375955740412e-8, -4.08334146109410771e-8,
 1.40500723430759868e-8, 8.75105800846351344e-9};
)cuda"},
    {"table_fresnel_s",
     "",
     R"cuda(
__constant__ double table_fresnel_s[] = {3.2768, 0.30517578125, 0.288939362640846055,
 -0.176135650139544722, 0.0501329525923022844, -0.00762927874490179527, 0.000714232031244195347,
 -0.0000451689508862218859, 2.05781185843804774e-6, -7.07444123194602749e-8, 1.90056326106773673e-9,
 -4.10024085950590285e-11, 7.26426036093387002e-13, -1.07461328333191561e-14};
)cuda"},
    {"table_fresnel_c",
     "",
     R"cuda(
__constant__ double table_fresnel_c[] = {3.2768, 0.30517578125, 0.44345811214457083,
 -0.349835097851538806, 0.16644305991154661, -0.0356266466499555001, 0.00428781838520040353,
 -0.000330776077642803168, 0.0000177642773552858511, -7.02832015478978761e-7,
 2.13464432594670781e-8, -5.13532707654238254e-10, 1.00360190717035301e-11,
 -1.62294726872155277e-13};
)cuda"},
    {"table_fresnel_f",
     "",
     R"cuda(
__constant__ double table_fresnel_f[] = {0.1953125, 5.12, 0.989599451284275242,
 -0.0189100624365263187, -0.00637346981986764035, 0.0020554278171168428, -0.000270304328831985212,
 -0.0000790069625143814642, 0.00007476103158069307, -0.0000326976449008065319,
 8.54395666426343037e-6, 3.36419299383060052e-7, -2.1480948571000166e-6, 1.69204328443816299e-6,
 -9.16712270904840823e-7, 3.59811561619932228e-7, -5.58844656713529063e-8, -3.9323054048375198e-8,
 1.79685063003071534e-8, -4.54446056828782123e-8, 1.10217721849012573e-7, -3.31518297519003509e-8,
 -8.76958232822619848e-8, 2.60378453185648061e-8, 7.44895361972773959e-8, -2.56013673550042049e-8,
 -3.85939018962158377e-8, 1.76824858610171635e-8, 7.36980509656771168e-9, -4.05872396235520472e-9};
)cuda"},
    {"table_fresnel_g",
     "",
     R"cuda(
__constant__ double table_fresnel_g[] = {0.1953125, 5.12, 0.95177932641122274,
 -0.0822240665890668569, -0.0195347821967048293, 0.0122255600914633917, -0.00322280857933100678,
 0.0000280557008171250628, 0.000514126224577682703, -0.000353759711046786557,
 0.000151305173366437847, -0.000036587004846336583, -7.90567536572565696e-6,
 0.0000170257781664575583, -0.0000134496706296319768, 7.68232395171514822e-6,
 -3.20281929194963766e-6, 7.1537935771389471e-7, -2.22512116294124015e-8, -3.38646426963482463e-7,
 1.52157845443064395e-6, -1.1635306469714639e-6, -1.79546901621668106e-6, 1.47306367617972022e-6,
 3.17172699034100013e-6, -2.39603796330858554e-6, -3.57510150006985693e-6, 2.71612294393005676e-6,
 2.82263749481511523e-6, -2.14046299862654941e-6, -1.52852702742038013e-6, 1.169679463256538e-6,
 4.80575731845828457e-7, -3.79668054671721727e-7, -6.42932622715349478e-8, 5.32557082904890268e-8};
)cuda"},
    {"table_j0_zero_1",
     "",
     R"cuda(
__constant__ double table_j0_zero_1[] = {0x1.33d152e971b40p+1, -0x1.0f539d7da258ep-53};
)cuda"},
    {"table_j0_zero_2",
     "",
     R"cuda(
__constant__ double table_j0_zero_2[] = {0x1.6148f5b2c2e45p+2, 0x1.75054cd60a517p-54};
)cuda"},
    {"table_j1_zero_1",
     "",
     R"cuda(
__constant__ double table_j1_zero_1[] = {0x1.ea75575af6f09p+1, -0x1.60155a9d1b256p-53};
)cuda"},
    {"table_ei_zero",
     "",
     R"cuda(
__constant__ double table_ei_zero[] = {0x1.7d72952b4b5fcp-2, 0x1.e4c986021c6f2p-57};
)cuda"},
    {"gamma",
     "table_gamma_2 table_gamma_star",
     R"cuda(
template <class N>
 static __device__ __noinline__ N gamma(N x) {
 const N y = abs(x);
 N factor = like(y, 1.0), rest = y;
 for (int step = 0; step < 6; ++step) {
 const auto above = (rest >= 2.5) & (y < 8.5);
 const N below = rest - 1.0;
 factor = select(above, factor * below, factor);
 rest = select(above, below, rest);
}
 const auto low = y < 0.5, middle = y < 1.5;
 const N divisor = select(low, y * (y + 1.0), select(middle, y, like(y, 1.0)));
 rest = select(low, y + 2.0, select(middle, y + 1.0, rest));
 const N near = fitted(rest - 2.0, table_gamma_2) * factor / divisor;
 const N z = at_most(at_least(y, 8.5), 200.0);
 const N half = pow_of(z, z * 0.5 - 0.25);
 const N rest_of_stirling =
 half * exp_of(-z) * (fitted(1.0 / z, table_gamma_star) * 2.5066282746310005024);
 const auto far = y >= 8.5;
 const N nearest = round_of(y), r = y - nearest;
 const N parity = nearest * 0.5 - trunc(nearest * 0.5);
 const N sine = sin_of(r * pi);
 const N quotient =
 select(equal(parity, 0.0), like(y, -1.0), like(y, 1.0)) * (pi / (y * sine));
 const N reflected = select(far, quotient / rest_of_stirling / half, quotient / near);
 N result = select(x < 0.0, reflected, select(far, rest_of_stirling * half, near));
 result = select((x < 0.0) & equal(x, trunc(x)), like(x, (f64)VT_NAN), result);
 return select(abs(x) < 0x1p-60, 1.0 / x, result);
}
)cuda"},
    {"erfcx",
     "table_erfcx",
     R"cuda(
template <class N>
 static __device__ __noinline__ N erfcx(N x) {
 const N y = abs(x), capped = at_most(y, 1e17);
 const N right = fitted((capped - 2.0) / (capped + 2.0), table_erfcx) * 0.5 / (y + 0.5);
 const N small = at_most(y, 30.0);
 const auto [square, low] = two_product(small, small);
 const N e = exp_of(square);
 return select(equal(x, 0.0), like(x, 1.0),
 select(x < 0.0, 2.0 * (e * (low + 1.0)) - right, right));
}
)cuda"},
    {"erfc_inv",
     "table_erf_inv_low table_erf_inv_middle table_erf_inv_high table_erf_inv_higher "
     "table_erf_inv_highest",
     R"cuda(
template <class N>
 static __device__ __noinline__ N erfc_inv(N q) {
 const N x = 1.0 - q, p = select(q < 1.0, q, 2.0 - q);
 const N w = -log_of(p * (2.0 - p)), s = sqrt(at_least(w, 4.0));
 N ratio = fitted(w, table_erf_inv_low);
 ratio = select(w < 5.0, ratio, fitted(s, table_erf_inv_middle));
 ratio = select(s > 3.6, fitted(s, table_erf_inv_high), ratio);
 ratio = select(s > 6.6, fitted(s, table_erf_inv_higher), ratio);
 ratio = select(s > 13.0, fitted(s, table_erf_inv_highest), ratio);
 const N inside = x * ratio;
 const N ends = select(equal(p, 0.0), copysign(like(x, (f64)VT_INF), x), like(x, (f64)VT_NAN));
 return select((q > 0.0) & (q < 2.0), inside, ends);
}
)cuda"},
    {"NormalTail",
     "",
     R"cuda(
template <class N>
 struct NormalTail {
 N size, square, low;
};
)cuda"},
    {"normal_tail",
     "erfcx NormalTail",
     R"cuda(
template <class N>
 static __device__ NormalTail<N> normal_tail(N x) {
 const N a = abs(x), capped = at_most(a, 1e154);
 const auto [square, low] = two_product(capped, capped);
 return {erfcx(a * (1 / sqrt2)) * 0.5, square * 0.5, low * 0.5};
}
)cuda"},
    {"ndtr",
     "normal_tail",
     R"cuda(
template <class N>
 static __device__ __noinline__ N ndtr(N x) {
 const auto [size, square, low] = normal_tail(at_least(x, -1e3));
 const N tail = size * (exp_of(-square) * (1.0 - low));
 return select(x < 0.0, tail, 1.0 - tail);
}
)cuda"},
    {"log_ndtr",
     "normal_tail",
     R"cuda(
template <class N>
 static __device__ __noinline__ N log_ndtr(N x) {
 const auto [size, square, low] = normal_tail(x);
 const N half = erf_of(abs(x) * (1 / sqrt2)) * 0.5;
 const N above = select(x > 1.0, size * (exp_of(-square) * (1.0 - low)), 0.5 - half);
 const N left = select(x < -1.0, log_of(size) - low - square, log_of(0.5 - half));
 return select(x < 0.0, select(x < -1e154, like(x, -(f64)VT_INF), left), log1p_of(-above));
}
)cuda"},
    {"dawsn",
     "table_dawson_small table_dawson_middle table_dawson_large",
     R"cuda(
template <class N>
 static __device__ __noinline__ N dawsn(N x) {
 const N a = abs(x), z = at_most(a, 2.0);
 const N small = x * fitted(z * z, table_dawson_small);
 const N inverse = 1.0 / at_least(a, 4.0);
 const N large = select(a < 4.0, fitted(at_most(a, 4.0), table_dawson_middle),
 fitted(inverse * inverse, table_dawson_large) * 0.5 * inverse);
 return select(a < 2.0, small, copysign(large, x));
}
)cuda"},
    {"bessel_i0e",
     "table_i0_small table_i0e_large",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_i0e(N x) {
 const N a = abs(x), z = at_most(a, 8.0);
 const N small = exp_of(-z) * fitted(z * z * 0.25, table_i0_small);
 const N b = at_least(a, 8.0);
 return select(a < 8.0, small, fitted(1.0 / b, table_i0e_large) / sqrt(b));
}
)cuda"},
    {"bessel_i1e",
     "table_i1_small table_i1e_large",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_i1e(N x) {
 const N a = abs(x), z = at_most(a, 8.0);
 const N small = x * 0.5 * exp_of(-z) * fitted(z * z * 0.25, table_i1_small);
 const N b = at_least(a, 8.0);
 return select(a < 8.0, small, copysign(fitted(1.0 / b, table_i1e_large) / sqrt(b), x));
}
)cuda"},
    {"bessel_k0e",
     "table_i0_small table_k0_small table_k0e_middle table_k0e_large",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_k0e(N x) {
 const N s = at_most(x, 1.0), z = s * s * 0.25;
 const N small = exp_of(s) * (fitted(z, table_k0_small) -
 log_of(s * 0.5) * fitted(z, table_i0_small));
 const N b = at_least(x, 1.0), r = 1.0 / b;
 const N large =
 select(b < 3.0, fitted(r, table_k0e_middle), fitted(r, table_k0e_large)) /
 sqrt(b);
 return select(x < 1.0, small, large);
}
)cuda"},
    {"bessel_k1e",
     "table_i1_small table_k1_small table_k1e_middle table_k1e_large",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_k1e(N x) {
 const N s = at_most(x, 1.0), z = s * s * 0.25;
 const N log_term = s * log_of(s * 0.5) * (s * 0.5) * fitted(z, table_i1_small);
 const N small = exp_of(s) * (1.0 + (log_term + z * fitted(z, table_k1_small))) / s;
 const N b = at_least(x, 1.0), r = 1.0 / b;
 const N large =
 select(b < 3.0, fitted(r, table_k1e_middle), fitted(r, table_k1e_large)) /
 sqrt(b);
 return select(equal(x, 0.0), like(x, (f64)VT_INF), select(x < 1.0, small, large));
}
)cuda"},
    {"Oscillation",
     "",
     R"cuda(
template <class N>
 struct Oscillation {
 N p, q, sum, difference, size;
};
)cuda"},
    {"oscillation",
     "Oscillation",
     R"cuda(
template <class N, size_t p_size, size_t q_size>
 static __device__ Oscillation<N> oscillation(N a, const double (&p)[p_size], const double
  (&q)[q_size]) {
 const N b = at_least(a, 5.0), inverse = 1.0 / b, r = inverse * inverse;
 const N s = sin_of(b), c = cos_of(b);
 return {fitted(r, p), inverse * fitted(r, q), c + s, s - c, 1.0 / sqrt(b * pi)};
}
)cuda"},
    {"j0_small",
     "table_j0_small table_j0_zero_1 table_j0_zero_2",
     R"cuda(
template <class N>
 static __device__ N j0_small(N x) {
 const auto from = [&](const double(&zero)[2]) {
 return ((x - zero[0]) - zero[1]) * (x + zero[0]);
};
 return from(table_j0_zero_1) * from(table_j0_zero_2) *
 fitted(x * x, table_j0_small);
}
)cuda"},
    {"j1_small",
     "table_j1_small table_j1_zero_1",
     R"cuda(
template <class N>
 static __device__ N j1_small(N x) {
 return x *
 (((x - table_j1_zero_1[0]) - table_j1_zero_1[1]) *
 (x + table_j1_zero_1[0])) *
 fitted(x * x, table_j1_small);
}
)cuda"},
    {"bessel_j0",
     "table_p0 table_q0 oscillation j0_small",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_j0(N x) {
 const N a = abs(x);
 const auto w = oscillation(a, table_p0, table_q0);
 const N large = (w.p * w.sum - w.q * w.difference) * w.size;
 const N inner = select(equal(a, 0.0), like(a, 1.0), j0_small(at_most(a, 5.0)));
 return select(a < 5.0, inner, select(equal(a, (f64)VT_INF), like(a, 0.0), large));
}
)cuda"},
    {"bessel_j1",
     "table_p1 table_q1 oscillation j1_small",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_j1(N x) {
 const N a = abs(x);
 const auto w = oscillation(a, table_p1, table_q1);
 const N large = (w.p * w.difference + w.q * w.sum) * w.size;
 const N right =
 select(a < 5.0, j1_small(at_most(a, 5.0)), select(equal(a, (f64)VT_INF), like(a, 0.0), large));
 return select(x < 0.0, -right, select(equal(x, 0.0), x, right));
}
)cuda"},
    {"bessel_y0",
     "table_y0_small table_p0 table_q0 oscillation j0_small",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_y0(N x) {
 const N s = at_most(x, 5.0);
 const N small = log_of(s) * j0_small(s) * (2 * inv_pi) +
 fitted(s * s, table_y0_small);
 const auto w = oscillation(x, table_p0, table_q0);
 const N large = (w.p * w.difference + w.q * w.sum) * w.size;
 return select(x < 5.0, small, select(equal(x, (f64)VT_INF), like(x, 0.0), large));
}
)cuda"},
    {"bessel_y1",
     "table_y1_small table_p1 table_q1 oscillation j1_small",
     R"cuda(
template <class N>
 static __device__ __noinline__ N bessel_y1(N x) {
 const N s = at_most(x, 5.0);
 const N small = (log_of(s) * j1_small(s) - 1.0 / s) * (2 * inv_pi) +
 s * fitted(s * s, table_y1_small);
 const auto w = oscillation(x, table_p1, table_q1);
 const N large = (w.q * w.difference - w.p * w.sum) * w.size;
 const N right = select(x < 5.0, small, select(equal(x, (f64)VT_INF), like(x, 0.0), large));
 return select(equal(x, 0.0), like(x, -(f64)VT_INF), right);
}
)cuda"},
    {"expi",
     "table_e1_small table_e1_large table_ei_small table_ei_6 table_ei_12 table_ei_24 "
     "table_ei_48 table_ei_zero",
     R"cuda(
template <class N>
 static __device__ __noinline__ N expi(N x) {
 const N y = abs(x), one = at_most(y, 1.0), capped = at_most(at_least(y, 1.0), 1e17);
 const N e1 =
 select(y < 1.0, fitted(one, table_e1_small) - log_of(one),
 exp_of(-y) / y * fitted((capped - 3.0) / (capped + 3.0), table_e1_large));
 const N s = at_most(y, 6.0), d = (s - table_ei_zero[0]) - table_ei_zero[1];
 const N quotient = select(s < 0.2, log_of(s * (1 / table_ei_zero[0])),
 log1p_of(at_least(d * (1 / table_ei_zero[0]), -0.5)));
 const N small = quotient + d * fitted(s, table_ei_small);
 const N r = 1.0 / at_least(y, 6.0);
 N series = select(y < 12.0, fitted(r, table_ei_6), fitted(r, table_ei_12));
 series =
 select(y < 24.0, series,
 select(y < 48.0, fitted(r, table_ei_24), fitted(r, table_ei_48)));
 const auto great = y > 690.0;
 const N growth = exp_of(select(great, y - 20.0, y)) * r *
 select(great, like(y, 485165195.40979027797), like(y, 1.0));
 const N positive = select(y < 6.0, small, select(equal(y, (f64)VT_INF), y, growth * series));
 return select(x < 0.0, -e1, select(equal(x, 0.0), like(x, -(f64)VT_INF), positive));
}
)cuda"},
    {"spence",
     "table_li2",
     R"cuda(
template <class N>
 static __device__ __noinline__ N spence(N x) {
 const auto small = x < 0.5, great = x > 2.0;
 const N inverse = 1.0 / at_least(x, 1.0);
 const N y = select(small, x, select(great, inverse, 1.0 - x));
 const N series = y * fitted(y, table_li2);
 const N l = log_of(x), product = l * log1p_of(-select(small | great, y, like(y, 0.0)));
 constexpr double sixth = pi * pi / 6;
 const N near = sixth - select(equal(x, 0.0), x, product) - series;
 const N far = (series - product) - (l * l * 0.5 + sixth);
 return select(small, near,
 select(great, select(equal(x, (f64)VT_INF), -x, far),
 select(equal(x, 1.0), like(x, 0.0), series)));
}
)cuda"},
    {"FresnelTail",
     "",
     R"cuda(
template <class N>
 struct FresnelTail {
 N f, g, sine, cosine;
};
)cuda"},
    {"fresnel_tail",
     "table_fresnel_f table_fresnel_g FresnelTail",
     R"cuda(
template <class N>
 static __device__ FresnelTail<N> fresnel_tail(N a) {
 const N b = at_most(at_least(a, 1.6), 1e17);
 const auto [square, low] = two_product(b, b);
 const N turn = square - 4.0 * round_of(square * 0.25);
 const N angle = (turn + low) * (pi / 2), r = 1.0 / square;
 const N size = 1.0 / (b * pi);
 return {size * fitted(r, table_fresnel_f),
 size * r * inv_pi * fitted(r, table_fresnel_g), sin_of(angle),
 cos_of(angle)};
}
)cuda"},
    {"fresnel_sin",
     "table_fresnel_s fresnel_tail",
     R"cuda(
template <class N>
 static __device__ __noinline__ N fresnel_sin(N x) {
 const N a = abs(x), s = at_most(a, 1.6), z = s * s;
 const auto w = fresnel_tail(a);
 const N small = s * z * fitted(z * z, table_fresnel_s),
 large = 0.5 - (w.f * w.cosine + w.g * w.sine);
 return copysign(select(a < 1.6, small, large), x);
}
)cuda"},
    {"fresnel_cos",
     "table_fresnel_c fresnel_tail",
     R"cuda(
template <class N>
 static __device__ __noinline__ N fresnel_cos(N x) {
 const N a = abs(x), s = at_most(a, 1.6), z = s * s;
 const auto w = fresnel_tail(a);
 const N small = s * fitted(z * z, table_fresnel_c),
 large = 0.5 + (w.f * w.sine - w.g * w.cosine);
 return copysign(select(a < 1.6, small, large), x);
}
)cuda"},
    {"bernoulli_over_factorial",
     "",
     R"cuda(
__constant__ double bernoulli_over_factorial[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600,
 1.0 / 47900160, -1.0 / 1892437580.31837916064, 1.0 / 74724249600.0, -1.0 / 2950130727918.16422450,
 1.0 / 116467828143500.672487, -1.0 / 4597978722407472.61055};
)cuda"},
    {"zeta_terms",
     "",
     R"cuda(
constexpr int zeta_terms = 12;
)cuda"},
    {"zeta_lowest",
     "",
     R"cuda(
constexpr double zeta_lowest = -64;
)cuda"},
    {"zeta_tail",
     "bernoulli_over_factorial",
     R"cuda(
template <class N>
 static __device__ N zeta_tail(N a, N power) {
 const N inverse = 1.0 / a, square = inverse * inverse;
 const N b = pow_of(a, power + 1.0);
 N term = -power * inverse, rest = like(a, 0.5);
 for (int k = 0; k < 10; ++k) {
 rest = rest + term * bernoulli_over_factorial[k];
 term = term * ((2.0 * k + 1.0) - power) * ((2.0 * k + 2.0) - power) * square;
}
 return select(equal(b, 0.0), b, b * (1.0 / (-power - 1.0) + inverse * rest));
}
)cuda"},
    {"zeta",
     "zeta_terms zeta_lowest zeta_tail",
     R"cuda(
template <class N>
 static __device__ __noinline__ N zeta(N s, N q) {
 const auto usable = s > 1.0, far = q < zeta_lowest;
 const N fraction = select(far, q - round_of(q), q), start = fraction - 24.0;
 const N from = select(usable, select(far, start, q), like(q, 1.0)),
 power = select(usable, -at_most(s, 1e30), like(s, -2.0));
 const N sum = iterate(
 like(q, 0.0), from,
 [&](const N& k) {
 return (k < static_cast<double>(zeta_terms)) | (from + k < static_cast<double>(zeta_terms));
},
 [&](const N& so_far, const N& k) {
 const N a = from + k, t = a - from, lost = (from - (a - t)) + (k - t),
 term = pow_of(a, power);
 return so_far + term * (power * lost / a + 1.0);
});
 const N missing = at_least(zeta_terms - from, static_cast<double>(zeta_terms));
 const N count = select(missing > trunc(missing), trunc(missing) + 1.0, missing);
 N result = sum + zeta_tail(from + count, power);
 const N between = iterate(
 like(q, 0.0), q, [&](const N& k) { return far & (k < 2.0); },
 [&](const N& so_far, const N& k) {
 return zeta_tail(select(equal(k, 0.0), 1.0 - start, 1.0 - q), power) - so_far;
});
 const N half = 0.5 * s;
 result =
 select(far, select(equal(half, trunc(half)), result - between, result + between), result);
 result = select((q > 0.0) | equal(s, trunc(s)), result, like(s, (f64)VT_NAN));
 result =
 select(q > 0.0, result, select(equal(fraction, trunc(fraction)), like(s, (f64)VT_INF), result));
 return select(s > 1.0, select(equal(q, (f64)VT_INF), like(q, 0.0), result),
 select(equal(s, 1.0), like(s, (f64)VT_INF), like(s, (f64)VT_NAN)));
}
)cuda"},
    {"digamma_root_high",
     "",
     R"cuda(
constexpr double digamma_root_high = 1.4616321449683622;
)cuda"},
    {"digamma_root_low",
     "",
     R"cuda(
constexpr double digamma_root_low = 9.549995429965697e-17;
)cuda"},
    {"digamma_fit",
     "",
     R"cuda(
__constant__ double digamma_fit[] = {0.9676722454476212, -0.44276316898359214, 0.2584997609556509,
 -0.16394270544239933, 0.10782405069127954, -0.07219956125728176, 0.04880428816323914,
 -0.033161126430834756, 0.022597648248248545, -0.015424767205798105, 0.010538791788919843,
 -0.0072045109574719185, 0.004926769418388227, -0.0033700709071922902, 0.0023053483271584774,
 -0.0015749355480831084, 0.0010766128230576774, -0.000747499595599249, 0.0005180490833340102,
 -0.0003193696671207108, 0.00019075640343160688, -0.00019476490125987326, 0.00019426548768522768,
 -8.153978973309418e-05};
)cuda"},
    {"digamma_near_root",
     "digamma_root_high digamma_root_low digamma_fit",
     R"cuda(
static __device__ double digamma_near_root(double x) {
 const double d = (x - digamma_root_high) - digamma_root_low;
 double sum = 0;
 for (int k = static_cast<int>(sizeof digamma_fit / sizeof *digamma_fit) - 1; k >= 0; --k) sum = sum
  * d + digamma_fit[k];
 return sum * d;
}
)cuda"},
    {"digamma_asymptotic",
     "",
     R"cuda(
static __device__ double digamma_asymptotic(double x) {
 constexpr double terms[] = {1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132,
 -691. / 32760, 1. / 12, -3617. / 8160, 43867. / 14364};
 const double z = 1 / (x * x);
 double sum = 0;
 for (int k = 8; k >= 0; --k) sum = (sum + terms[k]) * z;
 return ::log(x) - (0.5 / x + sum);
}
)cuda"},
    {"digamma_positive",
     "digamma_near_root digamma_asymptotic",
     R"cuda(
static __device__ __noinline__ double digamma_positive(double x) {
 if (x >= 8) return digamma_asymptotic(x);
 if (x < 1) return digamma_near_root(x + 1) - 1 / x;
 double sum = 0;
 for (; x > 2; x -= 1) sum += 1 / (x - 1);
 return digamma_near_root(x) + sum;
}
)cuda"},
    {"digamma",
     "digamma_positive",
     R"cuda(
static __device__ __noinline__ double digamma(double x) {
 if ((x != x) || x == -(f64)VT_INF)
 return (f64)VT_NAN;
 if (x == 0) return -::copysign((f64)VT_INF, x);
 if (x > 0) return digamma_positive(x);
 const double r = x - round_of(x);
 if (r == 0) return (f64)VT_NAN;
 return digamma_positive(1 - x) - pi / ::tan(pi * r);
}
)cuda"},
    {},
};

}  // namespace vt::detail::cuda
